#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Replays the corpora with the libFuzzer targets, then fuzzes each for FUZZ_SECONDS (default 5). Inputs that end
# a target stay in tests/fuzz/found of the build folder. FUZZ_TARGETS: only those.
srcdir=${srcdir:-.}
builddir=${builddir:-.}
. "$srcdir/tests/fuzz/corpora.sh"
seconds=${FUZZ_SECONDS:-5}
faults=0
for target in ${FUZZ_TARGETS:-$targets}; do
    program=$builddir/tests/fuzz/fuzz_$target found=$builddir/tests/fuzz/found/$target
    mkdir -p "$found/new"
    set -- -artifact_prefix="$found/" -dict="$srcdir/tests/fuzz/words.dict" -timeout=10 -rss_limit_mb=2048 -verbosity=0
    # shellcheck disable=SC2046 # lists of folders
    if { "$program" "$@" -runs=0 -max_len=4194304 $(corpora "$target") &&
        "$program" "$@" -max_total_time="$seconds" -max_len=16384 -print_final_stats=1 \
            "$found/new" $(corpora "$target"); } >"$found/log" 2>&1; then
        sed -n "s/^stat::number_of_executed_units: */$target: runs /p" "$found/log"
    else
        faults=$((faults + 1))
        echo "$target: failed"
        tail -n 40 "$found/log"
    fi
done
echo "$faults faults"
[ "$faults" -eq 0 ]
