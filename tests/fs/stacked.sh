#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What somebody else has mounted on top of ours stays when the daemon ends or its time is out.
# shellcheck source=tests/fs/lib.sh
. "${srcdir:-.}/tests/fs/lib.sh"
oam=$golden/oam/valid/minimal_named.oam
mkfifo "$tmp/fifo"

# start OPTION...: a daemon in the foreground, once it is up
start() {
    env --default-signal "$ckptfs" -f "$oam" "$mnt" -o "notify_fd=3$1" 2>"$tmp/said" 3>"$tmp/fifo" &
    pid=$!
    is news "$(cat "$tmp/fifo")" s
}
count() {
    grep -c " $mnt " /proc/self/mounts
}
# cover WAY: mounts something on top of it
cover() {
    case $1 in
    tmpfs) ok mount -t tmpfs -o size=64k ours "$mnt" && echo x >"$mnt/x" ;;
    ckptfs) ok "$ckptfs" "$oam" "$mnt" ;;
    bind) ok mount --bind "$mnt" "$mnt" ;;
    esac
}
# covered WAY: it is still there, and works
covered() {
    case $1 in
    tmpfs) is 'on top' "$(cat "$mnt/x")" x ;;
    ckptfs) ok cat "$mnt/config.json" ;;
    bind) ;; # of the one that ended
    esac
}

[ "$(id -u)" -eq 0 ] || { echo 'not root' && exit 77; }
for way in tmpfs ckptfs bind; do
    for signal in TERM INT; do
        start ''
        cover "$way"
        kill "-$signal" "$pid"
        wait "$pid" || fault "$way $signal: exit code $?"
        is "$way $signal: mounts" "$(count)" 2
        covered "$way"
        grep -q 'not unmounted' "$tmp/said" || fault "$way $signal: does not say it: $(cat "$tmp/said")"
        ok umount "$mnt"
        no 2 'not connected' ls "$mnt"
        ok umount "$mnt"
        is "$way $signal: mounts in the end" "$(count)" 0
    done
done

# The time out would unmount it at the second time at the latest; what lies on top keeps ours in use.
for way in tmpfs ckptfs; do
    start ,idle_timeout=1
    cover "$way"
    timeout 3 tail --pid="$pid" -f /dev/null && fault "$way: ended though covered"
    is "$way, time out: mounts" "$(count)" 2
    covered "$way"
    ok umount "$mnt"
    wait "$pid" || fault "$way, time out: exit code $?"
    is "$way, time out: mounts in the end" "$(count)" 0
done
finish
