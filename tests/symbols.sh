#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports what ckptfs.h declares, all of it and nothing else.
set -u
srcdir=${srcdir:-.} builddir=${builddir:-.}
lib=$builddir/.libs/libckptfs.so
[ -e "$lib" ] || { echo "no shared library was built"; exit 77; }
declared=$(grep -oE '\bckpt_[a-z0-9_]+\(' "$srcdir/include/ckptfs.h" | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$lib" | awk '$2 ~ /[TDBRW]/ {print $3}' | grep -v '^_' | sort -u)
if [ "$declared" != "$exported" ]; then
    printf 'declared:\n%s\nexported:\n%s\n' "$declared" "$exported"
    exit 1
fi
echo "$(echo "$exported" | wc -l) symbols"
