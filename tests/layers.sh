#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes only go down, and only along these edges.
srcdir=${srcdir:-.}
allowed() {
    case $1 in
    base) echo "base" ;;
    hash | source | catalog) echo "base $1" ;;
    verify) echo "base hash source catalog verify" ;;
    format) echo "base source catalog format" ;;
    dequant) echo "base catalog dequant" ;;
    tree) echo "base hash catalog verify dequant tree" ;;
    pack) echo "base hash source catalog dequant format pack" ;;
    gpu) echo "base catalog dequant gpu" ;;
    fuse | cli) echo "$1" ;;
    *) echo "unknown layer" ;;
    esac
}
faults=0
for file in "$srcdir"/src/*/*.[ch]; do
    layer=$(basename "$(dirname "$file")")
    for used in $(sed -n 's|^ *# *include "\([a-z]*\)/.*|\1|p' "$file" | sort -u); do
        case " $(allowed "$layer") " in
        *" $used "*) ;;
        *) echo "$file: layer $layer may not include $used/" && faults=$((faults + 1)) ;;
        esac
    done
    [ "$layer" = pack ] && grep -n '#include "format/' "$file" | grep -v '_layout\.h"' &&
        echo "$file: a writer shares numbers with a reader (*_layout.h), no logic" && faults=$((faults + 1))
    grep -n '#include "[^/]*"' "$file" | grep -v '"config.h"' &&
        echo "$file: include with the layer's name" && faults=$((faults + 1))
done
seen=$(find "$srcdir"/src -name '*.[ch]' | wc -l)
echo "$seen files, $faults faults"
[ "$faults" -eq 0 ] && [ "$seen" -gt 20 ]
