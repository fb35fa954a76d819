#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A user without privileges mounts by fusermount3. /dev/fuse is open to all in a view that only this test sees.
if [ -z "${CKPTFS_PRIVATE-}" ]; then
    (: <>/dev/fuse) 2>/dev/null || { echo 'no /dev/fuse to open' && exit 77; }
    unshare -m true 2>/dev/null || { echo 'no mount namespace of our own' && exit 77; }
    CKPTFS_PRIVATE=1 exec unshare -m "$0"
fi
# shellcheck source=tests/fs/lib.sh
. "${srcdir:-.}/tests/fs/lib.sh"
[ -u "$(command -v fusermount3 || echo /)" ] || { echo 'no fusermount3 with its bit set' && exit 77; }
mkdir "$tmp/dev"
if ! mount -t tmpfs -o mode=755 none "$tmp/dev" || ! mknod -m 666 "$tmp/dev/fuse" c 10 229 ||
    ! mount --bind "$tmp/dev/fuse" /dev/fuse; then
    echo 'no device of our own' && exit 77
fi
chmod 755 "$tmp"
cp "$ckptfs" "$tmp/ckptfs"
cp "$golden/oam/valid/minimal_named.oam" "$tmp/a.oam"
chown 65534:65534 "$mnt"
mkfifo -m 666 "$tmp/fifo"
oam=$tmp/a.oam
become_user() {
    exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
user() {
    (become_user "$@")
}

ok user "$tmp/ckptfs" "$oam" "$mnt"
is type "$(show 3)" fuse.ckptfs
is options "$(show 4 | grep -o 'ro,nosuid,nodev.*user_id=65534,group_id=65534,default_permissions')" \
    'ro,nosuid,nodev,relatime,user_id=65534,group_id=65534,default_permissions'
ok user cat "$mnt/config.json"
is owner "$(user stat -c %u:%g "$mnt")" 65534:65534
no 2 'Permission denied' ls "$mnt"
ok user "$tmp/ckptfs" -u "$mnt"
is 'after -u' "$(show 3)" ''

# Busy: says who, and detaches.
ok user "$tmp/ckptfs" "$oam" "$mnt"
user sh -c "exec 4<'$mnt/config.json'; '$tmp/ckptfs' -u '$mnt'; exit \$?" >"$tmp/out" 2>&1 || fault "-u of a busy one: exit code $?"
grep -q 'held by process [0-9]* (sh)' "$tmp/out" || fault "-u does not say who: $(cat "$tmp/out")"
is 'after -u of a busy one' "$(show 3)" ''

# Signals, a dead mount, and the time out.
become_user "$tmp/ckptfs" -f "$oam" "$mnt" -o notify_fd=3 3>"$tmp/fifo" &
is news "$(cat "$tmp/fifo")" s
kill -TERM $!
wait $! || fault "SIGTERM: exit code $?"
is 'after SIGTERM' "$(show 3)" ''
become_user "$tmp/ckptfs" -f "$oam" "$mnt" -o notify_fd=3 3>"$tmp/fifo" &
is news "$(cat "$tmp/fifo")" s
kill -KILL $!
wait $! 2>/dev/null
ok user "$tmp/ckptfs" "$oam" "$mnt"
ok user cat "$mnt/config.json"
is 'mounts over a dead one' "$(grep -c " $mnt " /proc/self/mounts)" 1
ok user "$tmp/ckptfs" -u "$mnt"
become_user "$tmp/ckptfs" -f "$oam" "$mnt" -o idle_timeout=1,notify_fd=3 3>"$tmp/fifo" &
is news "$(cat "$tmp/fifo")" s
wait $! || fault "idle_timeout: exit code $?"
is 'after the time out' "$(show 3)" ''

grep -qx user_allow_other /etc/fuse.conf 2>/dev/null ||
    no 2 'user_allow_other' user "$tmp/ckptfs" "$oam" "$mnt" -o allow_other
mkdir "$tmp/foreign"
no 2 "$tmp/foreign: cannot mount" user "$tmp/ckptfs" "$oam" "$tmp/foreign"
finish
