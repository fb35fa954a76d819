#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SIGTERM, SIGINT and SIGHUP unmount, whether the mount is in use or not, and the daemon exits with 0.
# shellcheck source=tests/fs/lib.sh
. "${srcdir:-.}/tests/fs/lib.sh"
oam=$golden/oam/valid/minimal_named.oam
mkfifo "$tmp/fifo"

for way in -f -fs; do
    for signal in TERM INT HUP; do
        for use in idle open cwd; do
            # Who runs the tests may ignore signals, and a shell does so for what it starts in the background.
            env --default-signal "$ckptfs" "$way" "$oam" "$mnt" -o notify_fd=3 3>"$tmp/fifo" &
            pid=$!
            is "$way $signal $use: news" "$(cat "$tmp/fifo")" s
            case $use in
            open) exec 4<"$mnt/config.json" && read -r _ <&4 ;;
            cwd) cd "$mnt/tensors" || fault "$use" ;;
            esac
            kill "-$signal" "$pid"
            wait "$pid" || fault "$way $signal $use: exit code $?"
            grep -q " $mnt " /proc/self/mounts && fault "$way $signal $use: still mounted"
            exec 4<&-
            cd "$tmp" || exit 99
        done
    done
done

# The one in the background: its end shows by the end of what it has inherited.
cat "$tmp/fifo" &
reader=$!
ok env --default-signal "$ckptfs" "$oam" "$mnt" 5>"$tmp/fifo"
exec 4<"$mnt/config.json"
kill -TERM "$(pgrep -f "^$ckptfs $oam $mnt\$")"
wait "$reader"
grep -q " $mnt " /proc/self/mounts && fault 'daemon: still mounted'
finish
