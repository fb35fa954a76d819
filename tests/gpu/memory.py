#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that a parameter store has ckptfs-gpu make, write and read: what it holds, and what is refused and changes
nothing. With CKPTFS_TEST_GPU=real on this machine's device."""
import errno
import os
import struct
import sys

sys.dont_write_bytecode = True
import talk
from talk import FD, HALF, IPC, Helper, Refused, peek

MAKE, WRITE, READ, COPIED = 7, 8, 9, 72
checks = faults = 0


def check(holds, *words):
    global checks, faults
    checks += 1
    if not holds:
        faults += 1
        print("fault:", *words)


def make(helper, number, size, share=IPC):
    kind, body, fds = helper.ask(MAKE, struct.pack("<QQB", number, size, share))
    names = ("id", "bytes", "offset", "block", "share", "handle")
    ready = dict(zip(names, struct.unpack("<QQQQB64s", body)))
    check(kind == talk.READY and ready["id"] == number and ready["bytes"] == size and ready["share"] == share, ready)
    return {**ready, "fd": fds[0] if fds else -1}


def move(helper, kind, number, off, size, half):
    reply, body, _ = helper.ask(kind, struct.pack("<QQIB", number, off, size, half))
    check(reply == COPIED and struct.unpack("<QB", body) == (number, half), reply, body)


def write(helper, number, off, data, half):
    helper.window[half * HALF:half * HALF + len(data)] = data
    move(helper, WRITE, number, off, len(data), half)
    helper.window[half * HALF:half * HALF + len(data)] = bytes(len(data))  # the half may be written again


def read(helper, number, off, size, half):
    move(helper, READ, number, off, size, half)
    return bytes(helper.window[half * HALF:half * HALF + size])


def check_values(helper, share):
    for size in (1, 4, 1000, HALF, (1 << 20) + 3, (3 << 20) + 1):
        ready = make(helper, 5, size, share)
        check(peek(ready, keep=True) == bytes(size), "not zeros", size)
        data = bytes((7 * i + size) % 251 for i in range(min(size, HALF)))
        write(helper, 5, size - len(data), data, 1)
        check(read(helper, 5, size - len(data), len(data), 0) == data, "read", size)
        check(peek(ready) == bytes(size - len(data)) + data, "another process", size)
        middle = len(data) // 2
        write(helper, 5, size - len(data) + middle, b"!", 0)
        check(read(helper, 5, size - len(data), len(data), 1) == data[:middle] + b"!" + data[middle + 1:], "odd", size)
        check(helper.release(5) > 0 and helper.info()[2] == 0, "given back", size)


def refused(helper, code, words, kind, body):
    try:
        helper.ask(kind, body)
        check(False, "not refused:", words)
    except Refused as error:
        check(error.errno == code and words in error.text, error)


def check_refused(helper):
    """Each is told, and leaves all as it was."""
    make(helper, 1, 5000)
    write(helper, 1, 0, b"x" * 5000, 0)
    for kind in (WRITE, READ):
        for off, size in ((5000, 1), (4999, 2), (2**64 - 1, 1), (2**64 - 4096, 4096), (0, HALF + 1)):
            refused(helper, errno.EINVAL, "memory 1 has 5000", kind, struct.pack("<QQIB", 1, off, size, 0))
        refused(helper, errno.EINVAL, "no memory 2", kind, struct.pack("<QQIB", 2, 0, 1, 0))
    refused(helper, errno.EINVAL, "made again", MAKE, struct.pack("<QQB", 1, 16, IPC))
    refused(helper, errno.ENOMEM, "", MAKE, struct.pack("<QQB", 3, 2**60, IPC))
    refused(helper, errno.ENOMEM, "", MAKE, struct.pack("<QQB", 3, 2**64 - 1, FD))
    check(read(helper, 1, 0, 5000, 1) == b"x" * 5000, "changed")
    helper.release(1)


def check_beside_tensors(helper):
    """A tensor that is being loaded cannot be touched; one that is ready can."""
    helper.begin(8, "U8", 600, 600)
    make(helper, 9, 100)
    for kind in (WRITE, READ):
        refused(helper, errno.EINVAL, "is being loaded", kind, struct.pack("<QQIB", 8, 0, 1, 0))
    refused(helper, errno.EINVAL, "made again", MAKE, struct.pack("<QQB", 8, 16, IPC))
    data = bytes(range(200)) * 3
    helper.fill(8, data)
    ready = helper.end(8)
    check(peek(ready) == data and read(helper, 8, 100, 500, 0) == data[100:], "tensor")
    check(read(helper, 9, 0, 100, 1) == bytes(100), "memory made meanwhile")
    helper.release(8)
    helper.release(9)


def check_malformed():
    """These end the conversation."""
    for kind, body in ((MAKE, struct.pack("<QQB", 1, 0, IPC)), (MAKE, struct.pack("<QQB", 1, 1, 2)),
                       (MAKE, struct.pack("<QQ", 1, 1)), (WRITE, struct.pack("<QQIB", 1, 0, 0, 0)),
                       (READ, struct.pack("<QQIB", 1, 0, 1, 2)), (READ, struct.pack("<QQIBB", 1, 0, 1, 0, 0))):
        with Helper() as helper:
            helper.hello()
            refused(helper, errno.EINVAL, "protocol", kind, body)
            try:
                helper.ask(talk.INFO)
                check(False, "still talks", kind, body)
            except (talk.Gone, BrokenPipeError):
                check(True)


def main():
    if not os.access(talk.HELPER, os.X_OK):
        print("no ckptfs-gpu: skipped")
        return 77
    with Helper() as helper:
        helper.hello()
        for share in (IPC, FD):
            check_values(helper, share)
        check_refused(helper)
        check_beside_tensors(helper)
        check(helper.info()[2] == 0, "something is left on the device")
        check(helper.close() == 0, "exit code")
    check_malformed()
    print("%d checks, %d faults" % (checks, faults))
    return 1 if faults or checks < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
