#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt quantize`: golden files, a second implementation, refusals, damage. CKPT_SEED repeats a run."""
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

from cli import CKPT, GOLDEN, Faults, ckpt, without_room

import oam_writer

faults = Faults()
OLD = b"what stood there before"
TOP = {"q4": 7, "q8": 127}
MODELS = 25


def read(path):
    with open(path, "rb") as stream:
        return stream.read()


def write(path, data):
    with open(path, "wb") as stream:
        stream.write(data)
    return path


def f32(value):
    """The nearest float32."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def quantize_block(values, top):
    """(integers, scale); a quotient of two float32 that is rounded to double first rounds to the same float32."""
    values = [value if math.isfinite(value) else 0.0 for value in values]
    scale = f32(max(map(abs, values)) / top)
    if not scale > 0 or math.isinf(scale):
        scale = 1.0
    return [max(-top, min(top, round(f32(value / scale)))) for value in values], scale


def quantize_tensor(data, kind):
    values = [value for value, in struct.iter_unpack("<f", data)]
    values += [0.0] * (-len(values) % 32)
    ints, scales = b"", b""
    for at in range(0, len(values), 32):
        block, scale = quantize_block(values[at:at + 32], TOP[kind])
        scales += struct.pack("<f", scale)
        if kind == "q8":
            ints += struct.pack("32b", *block)
        else:
            ints += bytes((block[i] + 7) | (block[i + 1] + 7) << 4 for i in range(0, 32, 2))
    return ints + scales


def quantized(model, kind):
    weights = []
    for tensor in model["weights"]:
        if len(tensor["shape"]) >= 2 and tensor["data"]:
            tensor = {**tensor, "encoding": kind, "block_size": 32, "data": quantize_tensor(tensor["data"], kind)}
        weights.append(tensor)
    return {**model, "weights": weights, "optimizer": None}


class Folder:
    """Where `out` is made whole or left as it was, and nothing appears besides."""

    def __init__(self, path):
        self.path, self.out = path, os.path.join(path, "target", "out.oam")
        os.mkdir(os.path.dirname(self.out))

    def at(self, name):
        return os.path.join(self.path, name)

    def made(self, what, kind, source, want, **environment):
        write(self.out, OLD)
        done = subprocess.run([CKPT, "quantize", kind, source, self.out], capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})
        faults.check(done.returncode == 0 and not done.stderr, "%s: %s" % (what, done.stderr))
        faults.check(read(self.out) == want, "%s: other bytes" % what)
        self.clean(what)

    def refused(self, what, code, *words, source, kind="q4"):
        write(self.out, OLD)
        got, _, err = ckpt("quantize", kind, source, self.out)
        faults.check(got == code, "%s: exit %d, want %d: %s" % (what, got, code, err))
        for word in words:
            faults.check(word in err, "%s: the message has no '%s': %s" % (what, word, err))
        faults.check(read(self.out) == OLD, "%s: the target changed" % what)
        self.clean(what)

    def clean(self, what):
        left = os.listdir(os.path.dirname(self.out))
        faults.check(left == ["out.oam"], "%s: there is more than the target: %s" % (what, left))


def golden(name):
    return os.path.join(GOLDEN, name)


def check_golden(folder):
    for kind in TOP:
        want = read(golden("oam/quantized/small_%s.oam" % kind))
        for cpu in ("portable", "avx2", ""):
            folder.made("golden %s %s" % (kind, cpu), kind, golden("oam/quantized/small_dense.oam"), want, CKPTFS_CPU=cpu)


# ---- random models ---------------------------------------------------------------------------------------------------

def floats(chance, count):
    """Of one nature: any bits, small, subnormal, halves (ties), huge, zeros."""
    def bits(mask, plus=0):
        return struct.pack("<I", chance.randrange(1 << 32) & mask | plus)
    nature = chance.randrange(6)
    make = [lambda: bits(0xFFFFFFFF), lambda: struct.pack("<f", chance.gauss(0, 0.02)), lambda: bits(0x800000FF),
            lambda: struct.pack("<f", chance.randint(-14, 14) / 2), lambda: bits(0xFFFFFFFF, 0x7F000000),
            lambda: bits(0x80000000)][nature]
    return b"".join(make() for _ in range(count))


def make_model(chance):
    model = oam_writer.model_of(read(golden("oam/write/float_specials/expected.oam")))
    for name in ("learning_rate", "best_metric"):  # NaNs with payloads stay what they were
        model["progress"][name] = chance.choice([0x7F800001, 0xFFC00001, 0x7FC00000, 0x7FFFFFFF, chance.randrange(1 << 32)])
    shapes = [[chance.randint(1, 40), chance.randint(1, 40)], [3, 0], [chance.randint(1, 70)], [],
              [chance.choice([31, 32, 33, 64]), 1], [1, 1, 1]]
    model["weights"] = [{"name": str(i), "dtype": "F32", "shape": shape, "encoding": "dense", "block_size": 0,
                         "data": floats(chance, math.prod(shape))} for i, shape in enumerate(shapes)]
    model["weights"].append({"name": "b", "dtype": "BF16", "shape": [3], "encoding": "dense", "block_size": 0,
                             "data": b"abcdef"})
    model["state"].append({"name": "i", "dtype": "I8", "shape": [2, 2], "encoding": "dense", "block_size": 0,
                           "data": b"abcd"})
    return model


def check_random(folder, seed):
    chance = random.Random(seed)
    for number in range(MODELS):
        model = make_model(chance)
        source = write(folder.at("source.oam"), oam_writer.write(model))
        for kind in TOP:
            want = oam_writer.write(quantized(model, kind))
            folder.made("random %d %s" % (number, kind), kind, source, want, CKPTFS_CPU=chance.choice(["portable", ""]))
    return source, kind, want


def check_long(folder):
    """More than the pieces that are read at once, and a last block that is not full."""
    rows = 3000
    model = make_model(random.Random(1))
    pattern = floats(random.Random(2), 1001)
    model["weights"] = [{"name": "long", "dtype": "F32", "shape": [rows, 1001], "encoding": "dense", "block_size": 0,
                         "data": pattern * rows}]
    source = write(folder.at("long.oam"), read(golden("oam/quantized/small_dense.oam")))
    spec = {"format": "oam", "config": {**model["config"], "arch_config": {"hex": ""}}, "progress": model["progress"],
            "weights": [{**model["weights"][0], "data": "long.bin"}]}
    spec["config"].pop("arch_config_bytes")
    spec["progress"].update(learning_rate=0.5, best_metric=0)
    write(folder.at("long.bin"), pattern * rows)
    write(folder.at("long.json"), json.dumps(spec).encode())
    faults.check(ckpt("pack", folder.at("long.json"), source)[0] == 0, "pack a long tensor")
    blocks = -(-rows * 1001 // 32)
    for kind, size in (("q4", 16), ("q8", 32)):
        code, _, err = ckpt("quantize", kind, source, folder.out)
        faults.check(code == 0, "quantize a long tensor: %s" % err)
        stored = ckpt("cat", folder.out, "raw/tensors/long.bin")[1]
        faults.check(len(stored) == blocks * (size + 4), "a long tensor has %d bytes" % len(stored))
        whole = pattern * rows + b"\0" * (-rows * 1001 % 32 * 4)
        for block in [*range(0, 64), 8191, 8192, 8193, *range(blocks - 40, blocks)]:
            ints, scale = quantize_block(struct.unpack_from("<32f", whole, 128 * block), TOP[kind])
            at = stored[blocks * size + 4 * block:blocks * size + 4 * block + 4]
            packed = struct.pack("32b", *ints) if kind == "q8" else bytes(
                (ints[i] + 7) | (ints[i + 1] + 7) << 4 for i in range(0, 32, 2))
            faults.check(stored[block * size:block * size + size] == packed and at == struct.pack("<f", scale),
                         "block %d of a long tensor, %s" % (block, kind))


# ---- refusals --------------------------------------------------------------------------------------------------------

def check_refusals(folder, source):
    model = oam_writer.model_of(read(source))

    def with_weights(name, weights):
        return write(folder.at(name), oam_writer.write({**model, "weights": weights}))
    first, flat = model["weights"][0], model["weights"][2]
    words = {
        "other dtype": ([first, {**first, "name": "x", "dtype": "I32"}], ["x", "I32"]),
        "empty of another dtype": ([first, {**first, "name": "x", "dtype": "F16", "shape": [2, 0], "data": b""}], ["x", "F16"]),
        "vectors alone": ([flat], ["none of the 1 weights"]),
        "empty alone": ([{**first, "shape": [0, 4], "data": b""}], ["none of the 1 weights"]),
        "no weights": ([], ["none of the 0 weights"]),
    }
    for what, (weights, message) in words.items():
        for kind in TOP:
            folder.refused(what, 1, *message, source=with_weights("bad.oam", weights), kind=kind)
    for kind in TOP:
        folder.refused("quantized already", 1, "already", source=golden("oam/quantized/small_q8.oam"), kind=kind)
    folder.refused("raw bytes", 1, "raw", source=golden("envelope/accepted/one_byte.ckpt"))
    folder.refused("safetensors", 1, "safetensors", source=golden("safetensors/valid/simple.safetensors"))
    folder.refused("no file", 2, "No such file", source=folder.at("none.oam"))
    folder.refused("a directory", 2, "is a directory", source=folder.path)
    folder.refused("no checkpoint", 3, source=write(folder.at("page.oam"), b"<html>"))


def check_damage(folder, source):
    data = bytearray(read(source))
    sections = oam_writer.oam_tree(bytes(data))[2]["sections"]
    for row in sections:
        if row["kind"] == "optimizer":
            continue
        bad = data[:]
        bad[row["offset"] + row["size"] - 1] ^= 1
        folder.refused("damage in " + row["kind"], 3, row["kind"], source=write(folder.at("bad.oam"), bad))
    folder.refused("cut", 3, source=write(folder.at("bad.oam"), data[:-1]))


def check_envelope(folder, source, kind, want):
    envelope = folder.at("sealed.ckpt")
    words = ["--schema", "a", "--learner", "b", "--data", "c", "--seed", "d", "--chunk", "1000", "--updates", "1",
             "--invocations", "1"]
    code, _, err = ckpt("seal", *words, source, envelope)
    faults.check(code == 0, "seal: %s" % err)
    folder.made("an envelope", kind, envelope, want)
    data = bytearray(read(envelope))
    weights = [row for row in oam_writer.oam_tree(read(source))[2]["sections"] if row["kind"] == "weights"][0]
    data[len(data) - len(read(source)) + weights["offset"] + weights["size"] - 1] ^= 1
    folder.refused("a damaged envelope", 3, "chunk-mismatch", source=write(envelope, data), kind=kind)


def check_use(folder, source):
    for words in ([], ["q4"], ["q4", source], ["q5", source, folder.out], ["q4", source, folder.out, "x"],
                  ["--frobnicate", "q4", source, folder.out]):
        code, _, err = ckpt("quantize", *words)
        faults.check(code == 1 and "usage: ckpt quantize" in err, "wrong use: %s: %s" % (words, err))
    faults.check(ckpt("quantize", "q8", source, os.path.dirname(folder.out))[0] == 2, "a directory as target")
    write(folder.out, OLD)
    code, err = without_room("quantize", "q8", source, folder.out)
    faults.check(code == 2 and "File too large" in err and read(folder.out) == OLD, "no room: exit %d: %s" % (code, err))
    folder.clean("no room")
    name = write(folder.at("same.oam"), read(source))
    code, _, err = ckpt("quantize", "q8", name, name)
    faults.check(code == 0 and read(name) != read(source), "onto its own input: %s" % err)


def main():
    seed = int(os.environ.get("CKPT_SEED", random.randrange(1 << 32)))
    print("CKPT_SEED=%d" % seed)
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(path)
        check_golden(folder)
        source, kind, want = check_random(folder, seed)
        check_long(folder)
        check_refusals(folder, source)
        check_damage(folder, source)
        check_envelope(folder, source, kind, want)
        check_use(folder, source)
    return faults.finish(400)


if __name__ == "__main__":
    sys.exit(main())
