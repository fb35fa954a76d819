#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A mount of the host, bound read-only into a container, is read there as root and as another user, with every
# capability dropped. runc and no network: what also works where cgroups are hybrid and limits cannot be raised.
# shellcheck source=tests/fs/lib.sh
. "${srcdir:-.}/tests/fs/lib.sh"
[ "$(id -u)" -eq 0 ] || { echo "needs root" && exit 77; }
for tool in podman runc busybox; do
    command -v "$tool" >/dev/null || { echo "no $tool" && exit 77; }
done

root=$tmp/root
mkdir -p "$root/bin" "$root/data" "$root/proc" "$root/tmp" "$root/etc"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in sh cat id sha256sum touch; do ln -s busybox "$root/bin/$applet"; done
cat >"$tmp/containers.conf" <<'CONF'
[containers]
default_ulimits=["nofile=1024:1024","nproc=1024:1024"]
netns="none"
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="none"
CONF
export CONTAINERS_CONF="$tmp/containers.conf"

# inside UID:GID COMMAND...
inside() {
    user=$1
    shift
    podman --root "$tmp/store" --runroot "$tmp/run" --storage-driver vfs run --rm --user "$user" --cap-drop all \
        --security-opt no-new-privileges --read-only -v "$mnt:/data:ro" --rootfs "$root" "$@"
}
inside 0:0 /bin/id >"$tmp/id" 2>&1 || { echo "podman runs no containers here: $(tail -n 1 "$tmp/id")" && exit 77; }

oam=$golden/oam/valid/transformer_adamw.oam
tensor=tensors/layers.0.wq.npy
ok "$ckptfs" -o allow_other "$oam" "$mnt"
want=$(sha256sum <"$mnt/$tensor")
for user in 0:0 1000:1000; do
    is "bytes as $user" "$(inside "$user" /bin/sh -c "sha256sum </data/$tensor")" "$want"
    is "uid as $user" "$(inside "$user" /bin/id -u)" "${user%%:*}"
    no 1 'Read-only file system' inside "$user" /bin/touch /data/new
done
ok umount "$mnt"

# Modes are checked: with nothing left to others, uid 1000 stays out.
ok "$ckptfs" -o allow_other,umask=077 "$oam" "$mnt"
no 1 'Permission denied' inside 1000:1000 /bin/cat "/data/$tensor"
is "bytes as the owner" "$(inside 0:0 /bin/sh -c "sha256sum </data/$tensor")" "$want"
ok umount "$mnt"
finish
