#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every option, and every way to hand one over.
# shellcheck source=tests/fs/lib.sh
. "${srcdir:-.}/tests/fs/lib.sh"
oam=$golden/oam/valid/minimal_named.oam
sealed=$golden/envelope/accepted/holds_oam.ckpt
off() {
    ok umount "$mnt"
}

# ---- what is refused, by name
no 1 'SOURCE and MOUNTPOINT' "$ckptfs"
no 1 'SOURCE and MOUNTPOINT' "$ckptfs" "$oam"
no 1 'SOURCE and MOUNTPOINT' "$ckptfs" "$oam" "$mnt" "$mnt"
no 1 'empty' "$ckptfs" "$oam" ''
no 1 'MOUNTPOINT alone' "$ckptfs" -u
no 1 '"-x"' "$ckptfs" -x "$oam" "$mnt"
no 1 '"--frobnicate"' "$ckptfs" "$oam" "$mnt" --frobnicate
no 1 '"frobnicate"' "$ckptfs" "$oam" "$mnt" -o ro,frobnicate
no 1 '"frobnicate=1"' "$ckptfs" "$oam" "$mnt" -o frobnicate=1
no 1 '"quiet=1"' "$ckptfs" "$oam" "$mnt" -o quiet=1
no 1 'a list must follow' "$ckptfs" "$oam" "$mnt" -o
for word in verify=often uid= uid=x uid=4294967295 gid=-1 umask=8 umask=1000 cache=x cache=1KK cache=99999999999T \
    readahead=1Q idle_timeout=soon notify_fd=x manifest= contract= log= fsname= subtype= \
    gpu= gpu_tensors= gpu_budget=x gpu_dtype= gpu_dtype=f gpu_dtype=f64 gpu_share=all; do
    no 1 "option $word: not " "$ckptfs" "$oam" "$mnt" -o "$word"
done
for word in 'gpu_tensors=*' gpu_budget=1G gpu_dtype=f16 gpu_share=fd; do
    no 1 'gpu_*: only with gpu' "$ckptfs" -o "$word" "$oam" "$mnt"
done
no 2 "$tmp/absent: " "$ckptfs" "$tmp/absent" "$mnt"
no 2 "$tmp/absent: No such file" "$ckptfs" "$oam" "$tmp/absent"
no 2 'Not a directory' "$ckptfs" "$oam" "$oam"
no 2 "$tmp/no/log: cannot write the log" "$ckptfs" -o "log=$tmp/no/log" "$oam" "$mnt"
mounted && fault 'something was mounted'

# ---- help
ok "$ckptfs" --help
for word in verify= manifest= uid= umask= direct allow_other notify_fd= idle_timeout= readahead= -u; do
    grep -q -e "$word" "$tmp/out" || fault "--help does not show $word"
done
ok "$ckptfs" -V
grep -q '^ckptfs .*libfuse' "$tmp/out" || fault 'the version'

# ---- where options stand, and what mount and fstab hand over
ok "$ckptfs" -o ro "$oam" "$mnt" -o noatime && off
ok "$ckptfs" "$oam" -sonoatime -- "$mnt" && off
ok "$ckptfs" "$oam" "$mnt" -o rw,dev,suid,exec,auto,noauto,user,user=me,nouser,users,defaults,_netdev,nofail && off
ok "$ckptfs" "$oam" "$mnt" -o nodev,nosuid,noexec,x-systemd.automount,X-y,comment=z,relatime,lazytime,async,, && off

# ---- /proc/mounts
ok "$ckptfs" "$oam" "$mnt"
is source "$(show 1)" "$(realpath "$oam")"
is type "$(show 3)" fuse.ckptfs
is options "$(show 4 | grep -o '^ro,nosuid,nodev')" ro,nosuid,nodev
is options "$(show 4 | grep -o 'default_permissions')" default_permissions
is options "$(show 4 | grep -o 'allow_other\|noexec')" ''
off
ok "$ckptfs" "$oam" "$mnt" -o 'fsname=a\,b c,subtype=other,noexec,allow_other'
is source "$(show 1)" 'a,b\040c'
is type "$(show 3)" fuse.other
is options "$(show 4 | grep -o 'noexec')" noexec
is options "$(show 4 | grep -o 'allow_other')" allow_other
off
cp "$oam" "$tmp/a, b\\c"
(cd "$tmp" && ok "$ckptfs" 'a, b\c' mnt)
is source "$(show 1)" "$tmp/a,\\040b\\134c"
off

# ---- owner and modes
ok "$ckptfs" "$oam" "$mnt"
is owner "$(stat -c %u:%g:%a "$mnt" "$mnt/config.json" | tr '\n' ' ')" "$(id -u):$(id -g):555 $(id -u):$(id -g):444 "
is times "$(stat -c %y "$mnt/config.json")" "$(stat -c %y "$oam")"
off
ok "$ckptfs" "$oam" "$mnt" -o uid=12,gid=34,umask=0227
is owner "$(stat -c %u:%g:%a "$mnt" "$mnt/config.json" | tr '\n' ' ')" '12:34:550 12:34:440 '
off
if [ "$(id -u)" -eq 0 ]; then
    # shellcheck disable=SC2317 # called by ok and no
    as_nobody() {
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    }
    chmod 755 "$tmp"
    ok "$ckptfs" "$oam" "$mnt" && no 2 'Permission denied' as_nobody ls "$mnt" && off
    ok "$ckptfs" "$oam" "$mnt" -o allow_other && ok as_nobody cat "$mnt/config.json" && off
    ok "$ckptfs" "$oam" "$mnt" -o allow_root && no 1 'Permission denied' as_nobody cat "$mnt/config.json" && off
    ok "$ckptfs" "$oam" "$mnt" -o allow_other,umask=007 && no 1 'Permission denied' as_nobody cat "$mnt/config.json" && off
    ok "$ckptfs" "$oam" "$mnt" -o allow_other,umask=077,uid=65534 && ok as_nobody cat "$mnt/config.json" && off
fi

# ---- statfs
ok "$ckptfs" "$oam" "$mnt"
is 'space left' "$(stat -f -c '%a %d' "$mnt")" '0 0'
is 'longest name' "$(stat -f -c %l "$mnt")" 255
off

# ---- notify_fd
ok "$ckptfs" "$oam" "$mnt" -o notify_fd=3 3>"$tmp/news"
is 'news of a good mount' "$(cat "$tmp/news")" s
off
no 3 'README.md: ' "$ckptfs" "$golden/README.md" "$mnt" -o notify_fd=3 3>"$tmp/news"
is 'news of a bad file' "$(cat "$tmp/news")" f
no 3 'README.md: ' "$ckptfs" -f "$golden/README.md" "$mnt" -o notify_fd=3 3>"$tmp/news"
is 'news of a bad file in the foreground' "$(cat "$tmp/news")" f
no 2 'absent: ' "$ckptfs" "$oam" "$tmp/absent" -o notify_fd=3 3>"$tmp/news"
is 'news of a bad mount point' "$(cat "$tmp/news")" f
no 1 'unknown option' "$ckptfs" "$oam" "$mnt" -o notify_fd=3,what 3>"$tmp/news"
is 'news of a bad option' "$(cat "$tmp/news")" f
mkfifo "$tmp/fifo"
for way in -f -fs; do
    "$ckptfs" "$way" "$oam" "$mnt" -o notify_fd=3 3>"$tmp/fifo" &
    is "news with $way" "$(cat "$tmp/fifo")" s
    mounted || fault "$way: told, but not mounted"
    off
    wait $! || fault "$way: exit code $?"
done
# The output of the one in the background ends when it is mounted, or this would wait.
is 'output' "$("$ckptfs" "$oam" "$mnt" 2>&1)" ''
off

# ---- verify=, manifest=, contract=
cp "$oam" "$tmp/damaged.oam"
printf X | dd of="$tmp/damaged.oam" bs=1 seek=4096 conv=notrunc status=none
no 3 "$tmp/damaged.oam: " "$ckptfs" "$tmp/damaged.oam" "$mnt" -o verify=full
mounted && fault 'verify=full mounted a damaged file'
for mode in lazy background off; do
    ok "$ckptfs" "$tmp/damaged.oam" "$mnt" -o "verify=$mode"
    if [ "$mode" = off ]; then
        ok cat "$mnt/sections/progress.bin" && ok cat "$mnt/sections/config.bin"
    else
        ok cat "$mnt/sections/progress.bin" && no 1 'Input/output error' cat "$mnt/sections/config.bin"
    fi
    grep -q "\"mode\":[[:space:]]*\"$mode\"" "$mnt/verify.json" || fault "verify.json does not say $mode"
    off
done
ok "$ckptfs" "$oam" "$mnt" -o verify=full && off
digest=$(head -c 4096 "$sealed" | sha256sum | cut -d' ' -f1)
ok "$ckptfs" "$sealed" "$mnt" -o "manifest=sha256:$digest" && off
no 3 'manifest' "$ckptfs" "$sealed" "$mnt" -o "manifest=sha256:$(echo "$digest" | tr 0-9 1-90)"
no 1 'manifest' "$ckptfs" "$sealed" "$mnt" -o 'manifest=sha256:12'
no 1 'manifest' "$ckptfs" "$sealed" "$mnt" -o "manifest=$digest"
no 3 'manifest' "$ckptfs" "$oam" "$mnt" -o "manifest=sha256:$digest"
first=$golden/envelope/accepted/whole_chunks.ckpt
ok "$ckptfs" "$first" "$mnt" -o "contract=$golden/envelope/contracts/c01.json" && off
no 3 'truncated' "$ckptfs" "$golden/envelope/accepted/whole_chunks_and_tail.ckpt" "$mnt" \
    -o "contract=$golden/envelope/contracts/c01.json"
no 2 'absent.json' "$ckptfs" "$first" "$mnt" -o "contract=$tmp/absent.json"
no 1 'contract' "$ckptfs" "$first" "$mnt" -o "contract=$golden/README.md"

# ---- messages
ok "$ckptfs" "$tmp/damaged.oam" "$mnt" -o "log=$tmp/log"
cat "$mnt/sections/config.bin" >/dev/null 2>&1
off
grep -q "ckptfs\[[0-9]*\]: $tmp/damaged.oam: .*config" "$tmp/log" || fault "the log: $(cat "$tmp/log")"
ok "$ckptfs" "$tmp/damaged.oam" "$mnt" -o "log=$tmp/log.redacted,redact"
cat "$mnt/sections/config.bin" >/dev/null 2>&1
off
grep -q 'ckptfs\[' "$tmp/log.redacted" || fault 'redact: no message'
grep -q 'damaged\.oam' "$tmp/log.redacted" && fault 'redact: the log names the file'
ok "$ckptfs" "$tmp/damaged.oam" "$mnt" -o "log=$tmp/log.quiet,quiet"
cat "$mnt/sections/config.bin" >/dev/null 2>&1
off
is 'quiet' "$(cat "$tmp/log.quiet")" ''

# ---- read-ahead, where it may be set
ahead() {
    cat "/sys/class/bdi/$(mountpoint -d "$mnt")/read_ahead_kb"
}
if [ -w "/sys/class/bdi/$(mountpoint -d "$top" || echo 0:0)/read_ahead_kb" ] || [ "$(id -u)" -eq 0 ]; then
    ok "$ckptfs" "$oam" "$mnt" && is 'read-ahead' "$(ahead)" 256 && off
    ok "$ckptfs" "$oam" "$mnt" -o readahead=512K && is 'read-ahead' "$(ahead)" 512 && off
    ok "$ckptfs" "$oam" "$mnt" -o readahead=0 && is 'read-ahead' "$(ahead)" 0 && off
fi
ok "$ckptfs" "$oam" "$mnt" -o cache=1M && ok cat "$mnt/config.json" && off
for size in 0 0M 1 1023K; do
    no 1 'option cache: at least 1M' "$ckptfs" "$oam" "$mnt" -o "cache=$size"
done
ok "$ckptfs" -s "$oam" "$mnt" -o nodirect,direct && ok cat "$mnt/config.json" && off

# ---- idle_timeout: in the foreground, so that its end can be waited for
"$ckptfs" -f "$oam" "$mnt" -o idle_timeout=1,notify_fd=3 3>"$tmp/fifo" &
is 'news with idle_timeout' "$(cat "$tmp/fifo")" s
wait $! || fault "idle_timeout: exit code $?"
mounted && fault 'idle_timeout: still mounted'

# ---- ckptfs -u
no 2 'no checkpoint is mounted' "$ckptfs" -u "$mnt"
no 2 'no checkpoint is mounted' "$ckptfs" -u /
no 2 'absent: No such file' "$ckptfs" -u "$tmp/absent"
ok "$ckptfs" "$oam" "$mnt" && ok "$ckptfs" -u "$mnt"
mounted && fault '-u: still mounted'
ok "$ckptfs" "$oam" "$mnt"
exec 4<"$mnt/config.json"
no 0 "held by process $$ (" "$ckptfs" --unmount "$mnt"
exec 4<&-
mounted && fault '-u of a busy one: still mounted'
# shellcheck disable=SC2016 # for that shell
ok "$ckptfs" "$oam" "$mnt" && no 0 'was busy' sh -c 'exec 4<"$1/config.json"; exec "$2" -u "$1"' - "$mnt" "$ckptfs"
grep -q 'held by' "$tmp/out" && fault "-u: names itself: $(cat "$tmp/out")"
finish
