#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A daemon that was killed leaves a dead mount: the next mount there takes its place, and -u removes it.
# shellcheck source=tests/fs/lib.sh
. "${srcdir:-.}/tests/fs/lib.sh"
oam=$golden/oam/valid/minimal_named.oam
mkfifo "$tmp/fifo"

# leave_dead: mounts, and kills the daemon.
leave_dead() {
    "$ckptfs" -f "$oam" "$mnt" -o notify_fd=3 3>"$tmp/fifo" &
    is news "$(cat "$tmp/fifo")" s
    kill -KILL $!
    wait $! 2>/dev/null
    no 2 'not connected' ls "$mnt"
}
count() {
    grep -c " $mnt " /proc/self/mounts
}

leave_dead
ok "$ckptfs" "$oam" "$mnt"
ok ls -l "$mnt/tensors"
is mounts "$(count)" 1
ok umount "$mnt"
is mounts "$(count)" 0

leave_dead
(cd "$tmp" && ok "$ckptfs" "$oam" mnt/)
ok ls -l "$mnt"
ok umount "$mnt"
is mounts "$(count)" 0

# One that is still held.
"$ckptfs" -f "$oam" "$mnt" -o notify_fd=3 3>"$tmp/fifo" &
is news "$(cat "$tmp/fifo")" s
exec 4<"$mnt/config.json"
kill -KILL $!
wait $! 2>/dev/null
ok "$ckptfs" "$oam" "$mnt"
ok cat "$mnt/config.json"
exec 4<&-
ok umount "$mnt"
is mounts "$(count)" 0

leave_dead
ok "$ckptfs" -u "$mnt"
is mounts "$(count)" 0

finish
