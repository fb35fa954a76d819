#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the caller hands over: standard descriptors that are closed or refuse, one for news, too little memory.
# shellcheck source=tests/fs/lib.sh
. "${srcdir:-.}/tests/fs/lib.sh"
oam=$golden/oam/valid/minimal_named.oam
section=$(dd if="$oam" bs=4204 skip=1 status=none | head -c 104 | sha256sum)

# ---- closed: what is opened next must not be lost with them
# serves WHAT: the mount is there, and serves what the file holds
serves() {
    mounted || fault "$1: not mounted"
    is "$1: a section" "$(sha256sum <"$mnt/sections/progress.bin")" "$section"
    ok umount "$mnt"
}
"$ckptfs" "$oam" "$mnt" <&- || fault "stdin closed: exit code $?"
serves 'stdin closed'
"$ckptfs" "$oam" "$mnt" >&- || fault "stdout closed: exit code $?"
serves 'stdout closed'
"$ckptfs" "$oam" "$mnt" 2>&- || fault "stderr closed: exit code $?"
serves 'stderr closed'
"$ckptfs" "$oam" "$mnt" -o "log=$tmp/log" <&- >&- 2>&- || fault "all closed: exit code $?"
serves 'all closed'

# ---- news on a standard descriptor
is 'news on stdout' "$("$ckptfs" "$oam" "$mnt" -o notify_fd=1)" s
serves 'news on stdout'
is 'news on stderr' "$("$ckptfs" "$oam" "$mnt" -o notify_fd=2 2>&1)" s
serves 'news on stderr'
"$ckptfs" "$oam" "$mnt" -o notify_fd=0 0>"$tmp/news"
is 'news on stdin' "$(cat "$tmp/news")" s
serves 'news on stdin'
is 'bad news on stdout' "$("$ckptfs" "$tmp/absent" "$mnt" -o notify_fd=1 2>/dev/null)" f
mkfifo "$tmp/fifo"
"$ckptfs" -f "$oam" "$mnt" -o notify_fd=1 >"$tmp/fifo" &
is 'news on stdout in the foreground' "$(head -c 1 "$tmp/fifo")" s
ok umount "$mnt"
wait $! || fault "in the foreground: exit code $?"

# ---- news nowhere
no 1 'notify_fd=7: not open' "$ckptfs" "$oam" "$mnt" -o notify_fd=7 7>&-
no 1 'notify_fd=3: not open' "$ckptfs" "$oam" "$mnt" -o notify_fd=3 3>&-
rc=0
"$ckptfs" "$oam" "$mnt" -o notify_fd=0 <&- 2>"$tmp/out" || rc=$?
is 'news on a closed stdin' "$rc $(cat "$tmp/out")" '1 ckptfs: notify_fd=0: not open'
mounted && fault 'notify_fd: something was mounted'

# ---- bad news whatever else is wrong
for words in notify_fd=3,what what,notify_fd=3 uid=x,cache=x,notify_fd=3; do
    no 1 'option' "$ckptfs" "$oam" "$mnt" -o "$words" 3>"$tmp/news"
    is "news with $words" "$(cat "$tmp/news")" f
done
no 1 '"-x"' "$ckptfs" -xo what "$oam" "$mnt" -o notify_fd=3 3>"$tmp/news"
is 'news of a bad letter' "$(cat "$tmp/news")" f
no 1 '"--what"' "$ckptfs" --what "$oam" "$mnt" -o notify_fd=3 3>"$tmp/news"
is 'news of a bad long option' "$(cat "$tmp/news")" f

# ---- a text that does not arrive
for option in --help -V; do
    for refusing in /dev/full closed; do
        rc=0
        if [ "$refusing" = closed ]; then
            "$ckptfs" "$option" 2>"$tmp/out" >&- || rc=$?
        else
            "$ckptfs" "$option" 2>"$tmp/out" >"$refusing" || rc=$?
        fi
        is "$option, $refusing: exit code" "$rc" 2
        grep -q '^ckptfs: standard output: [A-Z]' "$tmp/out" || fault "$option, $refusing: $(cat "$tmp/out")"
    done
done

# ---- too little memory for threads: whatever fails, it is not a permission. (The address
# sanitizer needs more, and its reports about that are no faults.)
for size in $(seq 12000 1000 30000); do
    rc=0
    env ASAN_OPTIONS="log_path=$tmp/memory" prlimit --as=$((size * 1024)) "$ckptfs" "$oam" "$mnt" >"$tmp/out" 2>&1 || rc=$?
    grep -q 'not permitted' "$tmp/out" && fault "with $size KiB: $(cat "$tmp/out")"
    if mounted; then
        is "with $size KiB: exit code" "$rc" 0
        ok umount "$mnt"
    elif [ "$rc" -eq 0 ]; then
        fault "with $size KiB: neither mounted nor failed"
    fi
done
finish
