#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Feeds all corpora to the fuzz targets: no fuzzer is needed for it. `FUZZ_VERBOSE=1` names each input.
srcdir=${srcdir:-.}
builddir=${builddir:-.}
. "$srcdir/tests/fuzz/corpora.sh"
faults=0
for target in $targets; do
    # shellcheck disable=SC2046 # a list of folders
    "$builddir/tests/fuzz/replay_$target" $(corpora "$target") || faults=$((faults + 1))
done
echo "$faults faults"
[ "$faults" -eq 0 ]
