#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A mount of the host, bound read-only into a container, is read there as root and as another user, with every
# capability dropped. runc and no network: what works as root also inside a sandbox with a hybrid cgroup tree.
set -eu
. "$srcdir/tests/fs/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "needs root"
for tool in podman runc busybox; do
    command -v "$tool" >/dev/null || skip "no $tool"
done

mkdir -p "$work/root/bin" "$work/root/data" "$work/root/proc" "$work/root/tmp" "$work/mnt"
cp "$(command -v busybox)" "$work/root/bin/busybox"
for applet in sh cat id sha256sum ls touch; do ln -s busybox "$work/root/bin/$applet"; done
cat >"$work/containers.conf" <<'CONF'
[containers]
default_ulimits=["nofile=1024:1024","nproc=1024:1024"]
netns="none"
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="none"
CONF
export CONTAINERS_CONF="$work/containers.conf"

in_container() {
    user=$1
    shift
    podman --root "$work/store" --runroot "$work/run" --storage-driver vfs run --rm --user "$user" --cap-drop all \
        --security-opt no-new-privileges --read-only -v "$work/mnt:/data:ro" --rootfs "$work/root" "$@"
}
in_container 0:0 /bin/id >"$work/id" 2>"$work/id.err" || skip "podman cannot run containers here: $(tail -n 1 "$work/id.err")"

mount_checkpoint "$srcdir/tests/golden/oam/valid/transformer_adamw.oam" "$work/mnt" -o allow_other
tensor=tensors/layers.0.wq.npy
want=$(sha256sum <"$work/mnt/$tensor")
for user in 0:0 1000:1000; do
    got=$(in_container "$user" /bin/sh -c "sha256sum </data/$tensor")
    [ "$got" = "$want" ] || fail "as $user: $got, want $want"
    [ "$(in_container "$user" /bin/id -u)" = "${user%%:*}" ] || fail "not running as $user"
    in_container "$user" /bin/touch /data/new 2>/dev/null && fail "as $user: the mount is writable"
done

# Modes are checked: a umask that leaves nothing to others keeps the other user out.
unmount "$work/mnt"
mount_checkpoint "$srcdir/tests/golden/oam/valid/transformer_adamw.oam" "$work/mnt" -o allow_other,umask=077
in_container 1000:1000 /bin/cat "/data/$tensor" >/dev/null 2>&1 && fail "umask=077 does not keep uid 1000 out"
echo "read as uid 0 and uid 1000"
