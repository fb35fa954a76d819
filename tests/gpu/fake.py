#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A helper that misbehaves: speaks doc/gpu-protocol.md as if it had a device, but for one reply. The file that
CKPTFS_FAKE names says which, "STEP MANNER": see MANNERS; an empty file: it behaves."""
import os
import socket
import struct
import sys

HELLO, BEGIN, FILL, END, RELEASE, INFO = range(1, 7)
STEPS = {HELLO: "hello", BEGIN: "begin", FILL: "fill", END: "end", RELEASE: "release", INFO: "info"}
DEVICE, ALLOCATED, FILLED, READY, RELEASED, MEMORY, ERROR = range(65, 72)
TOTAL = 1 << 30
sizes = {}  # of tensors, by id


def frame(kind, body=b"", version=1):
    return struct.pack("<HH", version, kind) + body


def text(value):
    return struct.pack("<H", len(value)) + value.encode()


def error(number, code=5, words="as told"):
    return frame(ERROR, struct.pack("<QI", number, code) + text(words))


def device(**flags):
    return frame(DEVICE, struct.pack("<IIQQQBB", 0, 12040, TOTAL, TOTAL, 2 << 20, flags.get("pinned", 1), 1) + bytes(16)
                 + text("Fake") + text(""))


def good(kind, body):
    """The reply that is due."""
    if kind == HELLO:
        return device()
    if kind == INFO:
        return frame(MEMORY, struct.pack("<QQQ", TOTAL, TOTAL, 0))
    number = struct.unpack_from("<Q", body)[0]
    if kind == BEGIN:
        sizes[number] = struct.unpack_from("<Q", body, 16)[0]
        return frame(ALLOCATED, struct.pack("<QQQB", number, sizes[number], 2 << 20, body[24]))
    if kind == FILL:
        return frame(FILLED, struct.pack("<QB", number, body[20]))
    if kind == END:
        return frame(READY, struct.pack("<QQQQB", number, sizes[number], 0, 2 << 20, 0) + bytes(64))
    return frame(RELEASED, struct.pack("<QQ", number, 2 << 20))


def changed(reply, at, byte):
    return reply[:at] + bytes([byte]) + reply[at + 1:]


MANNERS = {
    "exits": None, "hangs": None, "brings": None,
    "empty": lambda reply: b"\0", "short": lambda reply: reply[:-1], "long": lambda reply: reply + b"\0",
    "huge": lambda reply: reply + bytes(2000), "garbage": lambda reply: b"HTTP/1.1 200 OK\r\n",
    "version": lambda reply: changed(reply, 0, 2), "type": lambda reply: changed(reply, 2, 99),
    "other type": lambda reply: frame(FILLED, bytes(9)) if reply[2] != FILLED else frame(RELEASED, bytes(16)),
    "request": lambda reply: frame(INFO), "other id": lambda reply: changed(reply, 4, reply[4] + 1),
    "stray error": lambda reply: error(1 << 40), "blame": lambda reply: error(struct.unpack_from("<Q", reply, 4)[0], 22),
    "no errno": lambda reply: error(struct.unpack_from("<Q", reply, 4)[0], 1),
    "refuses": lambda reply: error(struct.unpack_from("<Q", reply, 4)[0] if reply[2] != DEVICE else 0),
    "other bytes": lambda reply: changed(reply, 12, reply[12] ^ 1), "other half": lambda reply: changed(reply, 12, 1 - reply[12]),
    "flag": lambda reply: device(pinned=2), "other dtype": lambda reply: changed(reply, 28, 3),
    "past the end": lambda reply: changed(reply, 27, 1), "other share": lambda reply: changed(reply, 36, 1),
}


def answer(sock, reply, manner):
    """False: that was the last one."""
    if manner == "exits":
        return False
    if manner == "hangs":
        sock.recv(1)  # nobody sends anything: until it is over
        return False
    if manner == "twice":
        sock.send(reply)
    if manner == "brings":
        socket.send_fds(sock, [reply], [0])
    else:
        sock.send(MANNERS[manner](reply) if MANNERS.get(manner) else reply)
    return True


def main():
    with socket.socket(fileno=3) as sock:
        while packet := sock.recv(4096):
            kind = struct.unpack_from("<HH", packet)[1]
            with open(os.environ["CKPTFS_FAKE"], encoding="ascii") as file:
                step, _, manner = file.read().partition(" ")
            if not answer(sock, good(kind, packet[4:]), manner if STEPS[kind] == step else ""):
                return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
