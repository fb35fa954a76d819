#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MOUNTPOINT /dev/fd/N: a parent opens the FUSE device, mounts it (here not even read-only), and unmounts it."""
import ctypes
import errno
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import lib

OAM = os.path.join(lib.GOLDEN, "oam/valid/minimal_named.oam")


def mount(fd):
    libc = ctypes.CDLL(None, use_errno=True)
    data = "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other" % (fd, os.getuid(), os.getgid())
    if libc.mount(b"parent", lib.MOUNT.encode(), b"fuse.ckptfs", 0, data.encode()) != 0:
        print("cannot mount: %s" % os.strerror(ctypes.get_errno()))
        sys.exit(77)


def check_writes():
    file, new = lib.MOUNT + "/config.json", lib.MOUNT + "/new"
    attempts = [lambda: open(file, "r+b"), lambda: open(new, "wb"), lambda: os.mkdir(new), lambda: os.mknod(new),
                lambda: os.unlink(file), lambda: os.rmdir(lib.MOUNT + "/tensors"), lambda: os.symlink("x", new),
                lambda: os.rename(file, new), lambda: os.link(file, new), lambda: os.chmod(file, 0o600),
                lambda: os.truncate(file, 0), lambda: os.utime(file), lambda: os.setxattr(file, "user.x", b"x"),
                lambda: os.removexattr(file, "user.x")]
    for number, attempt in enumerate(attempts):
        try:
            attempt()
            lib.fault("write attempt %d was allowed", number)
        except OSError as error:
            lib.want(error.errno == errno.EROFS, "write attempt %d: %s", number, error)
    lib.want(not os.access(file, os.W_OK), "access says that it can be written")
    lib.want(os.access(file, os.R_OK), "access says that it cannot be read")


fd = os.open("/dev/fuse", os.O_RDWR)
os.set_inheritable(fd, True)
mount(fd)
done = subprocess.run([lib.CKPTFS, OAM, "/dev/fd/%d" % fd, "-o", "allow_other"], pass_fds=[fd])
lib.want(done.returncode == 0, "exit code %d", done.returncode)
os.close(fd)
lib.want("config.json" in os.listdir(lib.MOUNT), "not listed")
lib.want(lib.read(lib.MOUNT + "/sections/config.bin"), "not readable")
check_writes()
lib.want(subprocess.call(["umount", lib.MOUNT]) == 0, "cannot be unmounted")
done = subprocess.run([lib.CKPTFS, OAM, "/dev/fd/0", "-o", "idle_timeout=5"], capture_output=True, text=True)
lib.want(done.returncode == 1 and "idle_timeout" in done.stderr, "idle_timeout there: %s", done.stderr)
lib.finish()
