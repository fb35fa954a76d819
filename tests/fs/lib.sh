# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# For the tests here to source: a scratch folder, mounts that are gone at the end, a count of faults.
set -u
(: <>/dev/fuse) 2>/dev/null || { echo "no /dev/fuse to open"; exit 77; }
top=$(cd "${srcdir:-.}" && pwd -P)
build=$(cd "${builddir:-.}" && pwd -P)
export ckptfs="$build/ckptfs" golden="$top/tests/golden"
tmp=$(mktemp -d) && tmp=$(cd "$tmp" && pwd -P) || exit 99
mnt=$tmp/mnt
mkdir "$mnt"
faults=0
# A daemon in the background has nowhere to complain.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}log_path=$tmp/sanitizer"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}print_stacktrace=1:log_path=$tmp/sanitizer"

cleanup() {
    while read -r _ where _; do
        case $where in "$tmp"*) umount -l "$where" ;; esac
    done </proc/self/mounts
    rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 99' HUP INT TERM

fault() {
    echo "FAULT: $*"
    faults=$((faults + 1))
}
# ok COMMAND...: must succeed.
ok() {
    "$@" >"$tmp/out" 2>&1 || { fault "$*: exit code $?" && cat "$tmp/out"; }
}
# no CODE WORDS COMMAND...: must exit with CODE and say WORDS.
no() {
    code=$1 words=$2
    shift 2
    rc=0
    "$@" >"$tmp/out" 2>&1 || rc=$?
    [ "$rc" -eq "$code" ] || { fault "$*: exit code $rc, want $code" && cat "$tmp/out"; }
    grep -qF -e "$words" "$tmp/out" || { fault "$*: does not say \"$words\"" && cat "$tmp/out"; }
}
# is WHAT GOT WANT
is() {
    [ "$2" = "$3" ] || fault "$1: \"$2\", want \"$3\""
}
mounted() {
    mountpoint -q "$mnt"
}
# show FIELD: a field of the mount's line in /proc/self/mounts (1 source, 3 type, 4 options).
show() {
    awk -v at="$mnt" -v field="$1" '$2 == at { line = $field } END { print line }' /proc/self/mounts
}
finish() {
    for report in "$tmp"/sanitizer.*; do
        [ ! -e "$report" ] || { fault "$report" && cat "$report"; }
    done
    echo "$faults faults"
    [ "$faults" -eq 0 ]
    exit
}
