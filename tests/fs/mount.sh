#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mount(8), an fstab line, the helper, and a FUSE device that somebody else has opened. Installs into a view of
# /usr/sbin that only this test sees.
if [ -z "${CKPTFS_PRIVATE-}" ]; then
    (: <>/dev/fuse) 2>/dev/null || { echo 'no /dev/fuse to open' && exit 77; }
    unshare -m true 2>/dev/null || { echo 'no mount namespace of our own' && exit 77; }
    CKPTFS_PRIVATE=1 exec unshare -m "$0"
fi
# shellcheck source=tests/fs/lib.sh
. "${srcdir:-.}/tests/fs/lib.sh"
oam=$golden/oam/valid/minimal_named.oam
mkdir "$tmp/bin"
cp "$ckptfs" "$top/contrib/mount.ckptfs" "$tmp/bin"
echo "$oam $mnt fuse.ckptfs noauto,x-systemd.automount,_netdev,nofail,allow_other 0 0" >"$tmp/fstab"
if ! mount -t overlay -o "lowerdir=$tmp/bin:/usr/sbin" none /usr/sbin || ! mount --bind "$tmp/fstab" /etc/fstab; then
    echo "no overlay on /usr/sbin" && exit 77
fi

# up WHAT COMMAND...: must mount it at $mnt.
up() {
    what=$1
    shift
    ok "$@"
    is "$what: type" "$(show 3)" fuse.ckptfs
    is "$what: options" "$(show 4 | grep -o '^ro,nosuid,nodev')" ro,nosuid,nodev
    ok cat "$mnt/config.json"
    ok umount "$mnt"
}
if [ -x /sbin/mount.fuse ]; then
    up 'mount -t fuse.ckptfs' mount -t fuse.ckptfs "$oam" "$mnt" -o ro
    up 'mount -t fuse.ckptfs without ro' mount -t fuse.ckptfs "$oam" "$mnt"
    up 'mount -t fuse.ckptfs with options' mount -t fuse.ckptfs "$oam" "$mnt" -o ro,nodev,nosuid,umask=077,allow_other
    up 'fstab' mount "$mnt"
    no 3 'README.md: ' mount -t fuse.ckptfs "$golden/README.md" "$mnt" -o ro
    no 1 '"what"' mount -t fuse.ckptfs "$oam" "$mnt" -o ro,what
fi
up 'mount -t ckptfs' mount -t ckptfs "$oam" "$mnt"
up 'mount -t ckptfs with options' mount -t ckptfs -s -o ro,verify=full "$oam" "$mnt"
ok mount -f -t ckptfs "$oam" "$mnt"
mounted && fault 'mount -f mounted'
no 3 'README.md: ' mount -t ckptfs "$golden/README.md" "$mnt"
ok python3 "$top/tests/fs/device.py"
cat "$tmp/out"
finish
