#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh DIR [CONFIGURE-OPTION...]: configures and builds in DIR, outside the sources. With other options than the
# last time, or where packages came or went that configure looks for, it configures anew.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || { sed -n '3,4p' "$0" && exit 1; }
dir=$1
shift
if [ -e "$top/config.status" ]; then
    echo "$top is configured in place; 'make distclean' there first, then it can be built in $dir" >&2
    exit 1
fi
if [ ! -x "$top/configure" ]; then
    (cd "$top" && autoreconf -fi >autoreconf.log 2>&1) || { cat "$top/autoreconf.log" && exit 1; }
fi
mkdir -p "$dir"
cd "$dir"
found=$(for library in check fuse3 libcrypto libcjson libxxhash; do pkg-config --modversion $library 2>&1 || true; done)
asked=$(printf '%s\n' "$@" "$found" "$(command -v nvcc || true)")
if [ ! -e config.status ] || [ "$asked" != "$(cat build.asked 2>/dev/null)" ]; then
    [ ! -e Makefile ] || make -s clean >/dev/null 2>&1 || true # what is there was built another way
    "$top/configure" --quiet "$@"
    printf '%s\n' "$asked" >build.asked
fi
echo "building in $dir"
make -s -j"$(nproc)" >make.out 2>&1 || { tail -n 40 make.out && exit 1; }
