#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The benchmark of the way onto a GPU runs through with the stand-in, of which it shows no figures, and says why it
# measures nothing where there is no driver.
set -u
srcdir=${srcdir:-.} builddir=${builddir:-.}
(: <>/dev/fuse) 2>/dev/null || { echo "no /dev/fuse to open"; exit 77; }
[ -x "$builddir/ckptfs-gpu" ] || { echo "no ckptfs-gpu: skipped"; exit 77; }
standin=$(cd "$builddir/tests/gpu/standin/.libs" && pwd) || exit 99
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 99' HUP INT TERM
faults=0
fault() {
    echo "FAULT: $*"
    cat "$tmp/out"
    faults=$((faults + 1))
}
# measure LIBRARIES: 4 MiB, once.
measure() {
    BENCH_MB=4 BENCH_ROUNDS=1 BENCH_DIR=$tmp LD_LIBRARY_PATH=$1 timeout 300 \
        python3 -B "$srcdir/tests/bench/bench.py" "$builddir" gpu >"$tmp/out" 2>&1
}

measure "$standin" || fault "with the stand-in: exit code $?"
[ "$(grep -c 'with the stand-in, no figure$' "$tmp/out")" -ge 6 ] || fault "not all was done"
! grep -E ' (ratio|GB/s|ms)$' "$tmp/out" || fault "figures of the stand-in"
: >"$tmp/libcuda.so.1" # no library
measure "$tmp" || fault "without a driver: exit code $?"
grep -q 'not measured: no CUDA device' "$tmp/out" || fault "does not say that there is none"
echo "$faults faults"
[ "$faults" -eq 0 ]
