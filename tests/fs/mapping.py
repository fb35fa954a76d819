#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of a mount behave as read-only files do: mmap, O_DIRECT, SEEK_DATA, flock; and every write is EROFS.
Also past the page cache (-o direct), where the kernel can."""
import ctypes
import errno
import fcntl
import mmap
import os
import random
import re
import sys

sys.dont_write_bytecode = True
import lib
import make

SIZE = 5 << 20
DATA = make.pattern(SIZE, 1)


def check_mappings(fd):
    for kind, flags in (("shared", mmap.MAP_SHARED), ("private", mmap.MAP_PRIVATE)):
        with mmap.mmap(fd, SIZE, flags=flags, prot=mmap.PROT_READ) as view:
            lib.want(view[:] == DATA, "%s mapping: other bytes", kind)
    with mmap.mmap(fd, SIZE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as view:
        view[0:4] = b"mine"
        lib.want(view[:8] == b"mine" + DATA[4:8], "private mapping: cannot be written")
    lib.want(os.pread(fd, 4, 0) == DATA[:4], "writing to a private mapping shows in the file")
    try:
        mmap.mmap(fd, SIZE, flags=mmap.MAP_SHARED, prot=mmap.PROT_WRITE)
        lib.fault("a shared mapping can be written")
    except OSError as error:
        lib.want(error.errno == errno.EACCES, "shared mapping for writing: %s", error)


def check_direct(file):
    fd = os.open(file, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, 1 << 20)
    for at in range(0, SIZE, 1 << 20):
        count = os.preadv(fd, [buffer], at)
        lib.want(buffer[:count] == DATA[at:at + (1 << 20)], "O_DIRECT at %d: other bytes", at)
    lib.want(os.preadv(fd, [buffer], SIZE) == 0, "O_DIRECT past the end")
    os.close(fd)


def check_seek(fd):
    dice = random.Random(1)
    for _ in range(300):
        at, size = dice.randrange(SIZE + 5000), dice.randrange(200000)
        lib.want(os.pread(fd, size, at) == DATA[at:at + size], "pread of %d at %d: other bytes", size, at)
    lib.want(os.lseek(fd, 5, os.SEEK_DATA) == 5, "SEEK_DATA")
    lib.want(os.lseek(fd, 5, os.SEEK_HOLE) == SIZE, "SEEK_HOLE")
    try:
        os.lseek(fd, SIZE, os.SEEK_DATA)
        lib.fault("SEEK_DATA past the end")
    except OSError as error:
        lib.want(error.errno == errno.ENXIO, "SEEK_DATA past the end: %s", error)


def resident(view):
    """How many pages of a private, writable mapping of the whole file are in memory."""
    pages = (ctypes.c_ubyte * -(-SIZE // mmap.PAGESIZE))()
    first = ctypes.c_char.from_buffer(view)
    failed = ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(SIZE), pages)
    del first
    lib.want(failed == 0, "mincore")
    return sum(page & 1 for page in pages)


def check_cache(file, direct):
    """What was read is kept in memory, but not with the option `direct`."""
    with open(file, "rb", buffering=0) as stream:
        lib.want(stream.read(SIZE) == DATA, "a read of everything: other bytes")
        with mmap.mmap(stream.fileno(), SIZE, flags=mmap.MAP_PRIVATE) as view:
            kept = resident(view)
    lib.want((kept == 0) if direct else (kept * mmap.PAGESIZE >= SIZE), "direct %s: %d pages kept", direct, kept)


def kernel_maps_direct():
    return tuple(int(word) for word in re.findall("[0-9]+", os.uname().release)[:2]) >= (6, 6)


def check_lock(fd, file):
    fcntl.flock(fd, fcntl.LOCK_EX)
    with open(file, "rb") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            lib.fault("flock: two owners")
        except BlockingIOError:
            pass
    fcntl.flock(fd, fcntl.LOCK_UN)


def check_writes(file, fd):
    folder = os.path.dirname(file)
    new = os.path.join(folder, "new")
    attempts = {
        "open for writing": lambda: os.open(file, os.O_WRONLY),
        "open for both": lambda: os.open(file, os.O_RDWR),
        "open and truncate": lambda: os.open(file, os.O_RDONLY | os.O_TRUNC),
        "create": lambda: os.open(new, os.O_CREAT | os.O_WRONLY),
        "truncate": lambda: os.truncate(file, 0),
        "mknod": lambda: os.mknod(new),
        "mkdir": lambda: os.mkdir(new),
        "unlink": lambda: os.unlink(file),
        "rmdir": lambda: os.rmdir(folder),
        "symlink": lambda: os.symlink("x", new),
        "rename": lambda: os.rename(file, new),
        "link": lambda: os.link(file, new),
        "chmod": lambda: os.chmod(file, 0o600),
        "chown": lambda: os.chown(file, 1, 1),
        "utime": lambda: os.utime(file),
        "setxattr": lambda: os.setxattr(file, "user.x", b"x"),
        "removexattr": lambda: os.removexattr(file, "user.x"),
        "chmod of an open file": lambda: os.fchmod(fd, 0o600),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
            lib.fault("%s: was allowed", name)
        except OSError as error:
            lib.want(error.errno == errno.EROFS, "%s: %s", name, error)


file = lib.path("a.oam")
with open(file, "wb") as stream:
    stream.write(make.oam([("t", DATA)]))
for options in [], ["direct"]:
    with lib.mounted(file, *options) as mount:
        tensor = mount + "/raw/tensors/t.bin"
        fd = os.open(tensor, os.O_RDONLY)
        check_mappings(fd)
        check_direct(tensor)
        check_seek(fd)
        check_lock(fd, tensor)
        check_writes(tensor, fd)
        check_cache(tensor, bool(options) and kernel_maps_direct())
        os.close(fd)
lib.finish()
