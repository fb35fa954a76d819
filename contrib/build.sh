#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh DIR [CONFIGURE-OPTION...]: configures and builds in DIR, outside the sources.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
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
[ -e config.status ] || "$top/configure" --quiet "$@"
echo "building in $dir"
make -s -j"$(nproc)" >make.out 2>&1 || { tail -n 40 make.out && exit 1; }
