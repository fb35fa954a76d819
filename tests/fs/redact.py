#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""-o redact keeps tensor names out of the log, also where the log says why a payload could not be parsed."""
import hashlib
import os
import struct

import lib

NAME = "secret.weight"
HEADER = ('{"%s":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' % NAME).encode()
PAYLOAD = struct.pack("<Q", len(HEADER)) + HEADER + b"\0\0\0\0"
CHUNK = 16


def seal(payload):
    chunks = [payload[at:at + CHUNK] for at in range(0, len(payload), CHUNK)]
    full, tail = divmod(len(payload), CHUNK)
    header = struct.pack("<8s8Q", b"ALPHACKP", 1, 4096, len(payload), CHUNK, full, tail, 0, 0) + bytes(128)
    header += b"".join(hashlib.sha256(chunk).digest() for chunk in chunks)
    return header.ljust(4096, b"\0") + payload


path, log = lib.path("x.ckpt"), lib.path("log")
with open(path, "wb") as stream:
    stream.write(seal(PAYLOAD).replace(b'"F32"', b'"B32"'))
for options, named in ((["log=" + log], True), (["redact", "log=" + log], False)):
    with lib.mounted(path, *options):
        lib.want(os.path.exists(lib.MOUNT + "/envelope/payload.bin"), "the envelope is not shown")
    with open(log, encoding="utf-8") as stream:
        text = stream.read()
    lib.want("raw bytes" in text, "the log does not say what was lost: %s", text)
    lib.want((NAME in text) == named, "the name is in the log: %s, want %s", NAME in text, named)
    os.unlink(log)
lib.finish()
