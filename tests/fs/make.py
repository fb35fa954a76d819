# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for the tests here, written by the rules of doc/: large, sparse or with known bytes."""
import hashlib
import json
import struct

FNV_START, FNV_PRIME, WORD = 0xCBF29CE484222325, 0x100000001B3, 1 << 64
PAGE = 4096


def fnv1a(data, value=FNV_START):
    for byte in data:
        value = (value ^ byte) * FNV_PRIME % WORD
    return value


def fnv1a_zeros(count, value):
    """Goes on over count zero bytes: each only multiplies by the prime."""
    return value * pow(FNV_PRIME, count, WORD) % WORD


def pattern(size, seed):
    """Bytes that differ from place to place and from seed to seed, quickly made."""
    return hashlib.shake_128(b"%d" % seed).digest(size)


def page_up(offset):
    return -(-offset // PAGE) * PAGE


def oam_config():
    return struct.pack("<32s6I3B49x", b"Test", 1, 0, 0, 0, 256, 0, 0, 0, 0)


def oam_progress():
    return struct.pack("<B3xqQQffB3x32s32x", 0, 7, 8, 9, 0.5, 0.25, 1, b"loss")


def oam_index(tensors):
    """tensors: (name, bytes), of dtype U8 and rank 1, one after another."""
    index, at = struct.pack("<II", len(tensors), 0), 0
    for name, size in tensors:
        index += struct.pack("<128sQQBBBB4x8Q", name.encode(), at, size, 5, 1, 0, 0, size, *[0] * 7)
        at += size
    return index


def oam_frame(sections):
    """sections: (kind, size, checksum). Returns the bytes up to the first payload, the payloads' offsets, the size."""
    offset, offsets = page_up(64 + 64 * len(sections)), []
    for _, size, _ in sections:
        offsets.append(offset)
        offset = page_up(offset + size)
    table = b"".join(struct.pack("<IB3xIQQQQ20x", kind, 0, 0, at, size, 0, checksum)
                     for (kind, size, checksum), at in zip(sections, offsets))
    head = struct.pack("<4s3IQQ32x", b"OAM\0", 3, len(sections), 0, offset, 0)
    head = head[:24] + struct.pack("<Q", fnv1a(head + table)) + head[32:]
    return (head + table).ljust(offsets[0], b"\0"), offsets, offset


def oam(tensors, state=()):
    """An .oam of (name, data) tensors."""
    payloads = [(1, oam_config())]
    for kind, group in ((2, tensors), (3, state)):
        if group:
            index = oam_index([(name, len(data)) for name, data in group])
            payloads.append((kind, index + b"".join(data for _, data in group)))
    payloads.append((5, oam_progress()))
    head, offsets, size = oam_frame([(kind, len(data), fnv1a(data)) for kind, data in payloads])
    out = bytearray(head.ljust(size, b"\0"))
    for (_, data), at in zip(payloads, offsets):
        out[at:at + len(data)] = data
    return bytes(out)


def oam_sparse(path, tensors):
    """An .oam of (name, bytes) tensors of zeros that takes hardly any room on disk."""
    index = oam_index(tensors)
    zeros = sum(size for _, size in tensors)
    config, progress = oam_config(), oam_progress()
    sections = [(1, len(config), fnv1a(config)),
                (2, len(index) + zeros, fnv1a_zeros(zeros, fnv1a(index))),
                (5, len(progress), fnv1a(progress))]
    head, offsets, size = oam_frame(sections)
    with open(path, "wb") as stream:
        stream.truncate(size)
        for at, data in zip([0] + offsets, (head, config, index, progress)):
            stream.seek(at)
            stream.write(data)


def envelope(payload, chunk):
    chunks = [payload[at:at + chunk] for at in range(0, len(payload), chunk)]
    header = b"ALPHACKP" + struct.pack("<8Q", 1, page_up(200 + 32 * len(chunks)), len(payload), chunk,
                                       len(payload) // chunk, len(payload) % chunk, 5, 5)
    header += b"".join(hashlib.sha256(name).digest() for name in (b"schema", b"learner", b"data", b"seed"))
    header += b"".join(hashlib.sha256(piece).digest() for piece in chunks)
    return header.ljust(page_up(len(header)), b"\0") + payload


def safetensors_head(tensors):
    """tensors: (name, bytes), of dtype U8 and rank 1, one after another."""
    rows, at = {}, 0
    for name, size in tensors:
        rows[name] = {"dtype": "U8", "shape": [size], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(rows, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def safetensors(tensors):
    return safetensors_head([(name, len(data)) for name, data in tensors]) + b"".join(data for _, data in tensors)


def safetensors_sparse(path, tensors):
    head = safetensors_head(tensors)
    with open(path, "wb") as stream:
        stream.write(head)
        stream.truncate(len(head) + sum(size for _, size in tensors))
