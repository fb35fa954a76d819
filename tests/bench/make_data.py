# SPDX-License-Identifier: Apache-2.0
"""Checkpoints to measure with: random bytes, or sparse files of zeros, whose FNV-1a follows from the algebra.

Tensors are U8 and named "layers.0000000.weight" and so on; sizes are in bytes. A `Blob` says what they hold.
"""
import hashlib
import json
import os
import struct
import subprocess

FNV_START, FNV_PRIME, WORD = 0xCBF29CE484222325, 0x100000001B3, 2 ** 64
PAGE, MIB = 4096, 1 << 20
CHUNK = 4 * MIB  # of an envelope


def fnv1a(data, value=FNV_START):
    for byte in data:
        value = (value ^ byte) * FNV_PRIME % WORD
    return value


def tensor_name(number):
    return "layers.%07d.weight" % number


# ---- what tensors hold ---------------------------------------------------------------------------------------------

class Zeros:
    """Takes no space. A zero byte only multiplies an FNV-1a by the prime."""

    def write(self, file, size):
        file.truncate(file.tell() + size)
        file.seek(size, os.SEEK_CUR)

    def fnv1a(self, path, head, offset, size):
        return fnv1a(head) * pow(FNV_PRIME, size, WORD) % WORD


class Noise:
    """Bytes that do not compress: one random piece, rotated anew each time."""

    def __init__(self, serial):
        self.serial, self.piece, self.turn = serial, os.urandom(16 * MIB), 0

    def write(self, file, size):
        while size > 0:
            self.turn = (self.turn + 4099) % len(self.piece)
            turned = memoryview(self.piece[self.turn:] + self.piece[:self.turn])
            size -= file.write(turned[:size])

    def fnv1a(self, path, head, offset, size):
        words = [self.serial, "fnv1a", path, str(offset - len(head)), str(size + len(head))]
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[2], 16)


# ---- files ---------------------------------------------------------------------------------------------------------

def npy_header(size):
    text = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % size
    return b"\x93NUMPY\x01\0" + struct.pack("<H", 118) + text.ljust(117).encode() + b"\n"


def npy(path, size, blob):
    with open(path, "wb") as file:
        file.write(npy_header(size))
        blob.write(file, size)


def npy_folder(path, sizes, blob):
    """What an ordinary file system holds instead of a mount's tensors/."""
    os.mkdir(path)
    for number, size in enumerate(sizes):
        npy(os.path.join(path, tensor_name(number) + ".npy"), size, blob)


def safetensors(path, sizes, blob):
    """Returns the header's bytes."""
    rows, at = {}, 0
    for number, size in enumerate(sizes):
        rows[tensor_name(number)] = {"dtype": "U8", "shape": [size], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(rows, separators=(",", ":")).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        blob.write(file, at)
    return len(text)


def oam_index(sizes):
    rows, at = [struct.pack("<II", len(sizes), 0)], 0
    for number, size in enumerate(sizes):
        rows.append(struct.pack("<128sQQBBBB4x8Q", tensor_name(number).encode(), at, size, 5, 1, 0, 0, size, *[0] * 7))
        at += size
    return b"".join(rows)


def oam_head(sections, total):
    """sections: (kind, offset, size, digest). The header's own digest covers itself with zeros in its place."""
    table = b"".join(struct.pack("<IB3xIQQQQ20x", kind, 0, 0, offset, size, 0, digest)
                     for kind, offset, size, digest in sections)
    head = struct.pack("<4sIIIQQ32x", b"OAM\0", 3, 3, 0, total, 0)
    return (head[:24] + struct.pack("<Q", fnv1a(head + table)) + head[32:] + table).ljust(PAGE, b"\0")


def oam(path, sizes, blob):
    """One weights section holds all tensors."""
    index, data = oam_index(sizes), sum(sizes)
    config = struct.pack("<32s6I3B49x", b"Bench", 1, 0, 0, 0, 256, 0, 0, 0, 0)
    progress = struct.pack("<B3xqQQffB3x32s32x", 0, 0, 0, 0, 0.0, 0.0, 1, b"loss")
    weights = PAGE + len(config)
    last = (weights + len(index) + data + PAGE - 1) // PAGE * PAGE
    with open(path, "wb") as file:
        file.seek(PAGE)
        file.write(config + index)
        blob.write(file, data)
        file.seek(last)
        file.write(progress)
    digest = blob.fnv1a(path, index, weights + len(index), data)
    with open(path, "r+b") as file:
        file.write(oam_head([(1, PAGE, len(config), fnv1a(config)), (2, weights, len(index) + data, digest),
                             (5, last, len(progress), fnv1a(progress))], last + len(progress)))


# ---- envelopes -----------------------------------------------------------------------------------------------------

def envelope_head(size, digests):
    full, tail = divmod(size, CHUNK)
    header = (200 + 32 * len(digests) + PAGE - 1) // PAGE * PAGE
    names = b"".join(hashlib.sha256(name).digest() for name in (b"schema", b"learner", b"data", b"seed"))
    fields = struct.pack("<8s8Q", b"ALPHACKP", 1, header, size, CHUNK, full, tail, 1, 1)
    return (fields + names + b"".join(digests)).ljust(header, b"\0")


def envelope(path, payload):
    """Puts a file into an envelope."""
    with open(payload, "rb") as source:
        digests = [hashlib.sha256(chunk).digest() for chunk in iter(lambda: source.read(CHUNK), b"")]
        size = source.tell()
        source.seek(0)
        with open(path, "wb") as file:
            file.write(envelope_head(size, digests))
            for chunk in iter(lambda: source.read(CHUNK), b""):
                file.write(chunk)


def envelope_of_zeros(path, size):
    full, tail = divmod(size, CHUNK)
    digests = [hashlib.sha256(bytes(CHUNK)).digest()] * full + [hashlib.sha256(bytes(tail)).digest()] * (tail > 0)
    with open(path, "wb") as file:
        file.write(envelope_head(size, digests))
        Zeros().write(file, size)
