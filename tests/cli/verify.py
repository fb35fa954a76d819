#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random damage: `ckpt verify` names the unit that was hit. CKPT_SEED repeats a run."""
import os
import random
import struct
import sys
import tempfile

from cli import GOLDEN, Faults, ckpt

import expected_tree

COPIES = 100
OAMS = ["transformer_adamw.oam", "minimal_named.oam", "table_reversed.oam", "v3_kernel_cache.oam"]
ENVELOPES = ["whole_chunks_and_tail.ckpt", "chunks_300_three_pages.ckpt", "one_chunk_exactly.ckpt", "holds_oam.ckpt"]


def oam_units(data):
    """[(begin, end, verdict, words that the message must hold)]"""
    rows = expected_tree.oam_tree(data)[2]["sections"]
    verdict = "corrupt: section payload checksum mismatch"
    return [(row["offset"], row["offset"] + row["size"], verdict, row["kind"]) for row in rows if row["size"]]


def envelope_units(data):
    header, payload, chunk = struct.unpack_from("<3Q", data, 16)
    return [(header + at, header + min(at + chunk, payload), "chunk-mismatch %d" % (at // chunk),
             "chunk-mismatch %d" % (at // chunk)) for at in range(0, payload, chunk)]


def load():
    """[(name, bytes, units)]"""
    found = []
    for folder, names, units in (("oam/valid", OAMS, oam_units), ("envelope/accepted", ENVELOPES, envelope_units)):
        for name in names:
            path = os.path.join(GOLDEN, folder, name)
            with open(path, "rb") as stream:
                data = stream.read()
            found.append((name, data, units(data)))
    return found


def damage(chance, data, unit):
    """One to three bytes of the unit, changed for certain."""
    data = bytearray(data)
    for at in {chance.randrange(unit[0], unit[1]) for _ in range(chance.randint(1, 3))}:
        data[at] ^= chance.randint(1, 255)
    return data


def main():
    faults = Faults()
    seed = int(os.environ.get("CKPT_SEED", random.randrange(1 << 32)))
    chance = random.Random(seed)
    print("CKPT_SEED=%d" % seed)
    files = load()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "damaged")
        for _ in range(COPIES):
            name, data, units = chance.choice(files)
            unit = chance.choice(units)
            with open(path, "wb") as stream:
                stream.write(damage(chance, data, unit))
            code, out, err = ckpt("verify", path)
            first = out.split(b"\n", 1)[0].decode()
            faults.check(code == 3 and first == unit[2], "%s: '%s' (exit %d), want '%s'" % (name, first, code, unit[2]))
            faults.check(unit[3] in err, "%s: the message does not name %s: %s" % (name, unit[3], err))
    return faults.finish(2 * COPIES)


if __name__ == "__main__":
    sys.exit(main())
