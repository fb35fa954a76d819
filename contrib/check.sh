#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs the tests. Ends with "N passed, N failed, N skipped".
#
#   check.sh                the unit tests and the tests that mount
#   check.sh --sanitizers   the same in a build with AddressSanitizer and UndefinedBehaviorSanitizer
#   check.sh --clang        a build with clang in which every warning is an error, and the fuzz targets' replay
#   check.sh --interop      against the real safetensors, ml_dtypes and real models (from PyPI, in a venv)
#   check.sh --dist         make distcheck
#   check.sh --all          all of these, one after another
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
packages() {
    for set in "$@"; do sed -n "s/^$set //p" contrib/packages; done
}

passed=0 failed=0 skipped=0
# Adds the results that automake's runner left below a build directory, and shows the logs of failures.
count() {
    for trs in $(find "$1" -name '*.trs' -not -path '*/_build/*' | sort); do
        case $(sed -n 's/^:global-test-result: //p' "$trs") in
        PASS | XFAIL) passed=$((passed + 1)) ;;
        SKIP) skipped=$((skipped + 1)) && echo "skipped: $(tail -n 1 "${trs%.trs}.log")" ;;
        *) failed=$((failed + 1)) && echo "--- ${trs%.trs}" && tail -n 40 "${trs%.trs}.log" ;;
        esac
    done
}
# One test that is a whole command.
step() {
    name=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "--- $name failed"; fi
}
# shellcheck disable=SC2046 # lists of words
need() {
    ./contrib/deps.sh $(packages "$@")
}
build_and_check() {
    dir=$1
    shift
    ./contrib/build.sh "$dir" "$@"
    make -s -C "$dir" -j"$(nproc)" check >"$dir/check.out" 2>&1 || tail -n 5 "$dir/check.out"
    grep -E '^(PASS|FAIL|SKIP|ERROR|# (TOTAL|PASS|FAIL|SKIP|ERROR))' "$dir/check.out" || true
    count "$dir"
}

plain() {
    need build check container
    build_and_check build --enable-werror
}
sanitizers() {
    need build check
    build_and_check build-sanitizers --enable-werror --enable-sanitizers CFLAGS='-g -O1'
}
with_clang() {
    need build check fuzz
    step 'clang build' ./contrib/build.sh build-clang --enable-werror --enable-fuzzers CC=clang CFLAGS='-g -O1'
    step 'fuzz replay' make -s -C build-clang check-fuzz
}
interop() {
    need build check interop
    ./contrib/build.sh build --enable-werror
    step 'interop' make -s -C build check-interop
}
dist() {
    need build check
    ./contrib/build.sh build --enable-werror
    step 'distcheck' sh -c 'make -s -C build distcheck >build/distcheck.out 2>&1 || { tail -n 40 build/distcheck.out; false; }'
}

case ${1:-} in
'') plain ;;
--sanitizers) sanitizers ;;
--clang) with_clang ;;
--interop) interop ;;
--dist) dist ;;
--all)
    plain
    sanitizers
    with_clang
    interop
    dist
    ;;
*) sed -n '3,12p' "$0" && exit 1 ;;
esac
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
