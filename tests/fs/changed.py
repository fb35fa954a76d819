#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A source that is truncated, rewritten in place or replaced while it is mounted: reads give EIO or ESTALE or the old
bytes, never others, never zeros, and the daemon lives on. A range that was read before is not read again from the
kernel's cache: reads are direct."""
import errno
import mmap
import os
import sys

sys.dont_write_bytecode = True
import lib
import make

SIZE = 3 << 20
TENSORS = [("t%d" % i, make.pattern(SIZE, i)) for i in range(3)]
BLOCK = 256 * 1024


def read_direct(name, offset, size):
    """size bytes at offset past the kernel's cache, or the errno."""
    buffer = mmap.mmap(-1, size)
    fd = os.open(name, os.O_RDONLY | os.O_DIRECT)
    try:
        return buffer[:os.preadv(fd, [buffer], offset)]
    except OSError as error:
        return error.errno
    finally:
        os.close(fd)


def truncate(file, data):
    os.truncate(file, len(data) // 2)


def empty(file, data):
    os.truncate(file, 0)


def zero(file, data):
    with open(file, "r+b") as stream:
        stream.write(bytes(len(data)))


def rewrite(file, data):
    """Other bytes of the same structure, size and times."""
    info = os.stat(file)
    with open(file, "r+b") as stream:
        for at in range(len(data) // 4, len(data), 5000):
            stream.seek(at)
            stream.write(bytes([data[at] ^ 255]))
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))


def replace(file, data):
    with open(file + ".new", "wb") as stream:
        stream.write(bytes(len(data)))
    os.rename(file + ".new", file)


def check(name, change, file, data, digests, warm):
    with open(file, "wb") as stream:
        stream.write(data)
    refused = read = 0
    with lib.mounted(file):
        for tensor, _ in TENSORS[:2] if warm else []:
            lib.want(isinstance(lib.read(lib.MOUNT + "/raw/tensors/%s.bin" % tensor), bytes), "%s: not readable", name)
        change(file, data)
        for tensor, want in TENSORS:
            for at in range(0, SIZE, BLOCK):
                got = read_direct(lib.MOUNT + "/raw/tensors/%s.bin" % tensor, at, BLOCK)
                if isinstance(got, int):
                    refused += 1
                    lib.want(got in (errno.EIO, errno.ESTALE), "%s: %s at %d: errno %d", name, tensor, at, got)
                else:
                    read += 1
                    lib.want(got == want[at:at + BLOCK], "%s: %s at %d: other bytes", name, tensor, at)
        lib.want(os.listdir(lib.MOUNT + "/tensors"), "%s: the daemon is gone", name)
    if change is replace:
        lib.want(refused == 0, "%s: %d reads were refused, the file is still open", name, refused)
    elif not warm:  # else the daemon may still have them
        lib.want(refused > 0, "%s: nothing was refused", name)
    print("%s: %d reads, %d refused" % (name, read, refused))


oam = make.oam(TENSORS)
SOURCES = {
    "a.oam": (oam, True),
    "a.ckpt": (make.envelope(oam, 400000), True),
    "a.safetensors": (make.safetensors(TENSORS), False),
}
for source, (data, digests) in SOURCES.items():
    for change in (truncate, empty, zero, rewrite, replace):
        if change is rewrite and not digests:
            continue  # nothing tells that such a file was changed
        for warm in (False, True):
            name = "%s, %s%s" % (source, change.__name__, ", read before" if warm else "")
            check(name, change, lib.path(source), data, digests, warm)
lib.finish()
