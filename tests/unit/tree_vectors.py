#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tree_vectors.txt: file names and .npy headers as tests/expected_tree.py has them.

  name HEX HEX            a tensor's name, its .npy file name
  npy DESCR SHAPE HEX     shape as 1,2,3 or - for rank 0, the header
"""
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True

from expected_tree import file_name, npy_header, tree_of  # noqa: E402


def golden_names():
    for path in ("oam/valid/names_awkward.oam", "safetensors/valid/names_awkward.safetensors"):
        tree, _ = tree_of(os.path.join(HERE, "..", "golden", path))
        yield from tree["tensors.json"]["tensors"]
        yield from tree["tensors.json"]["state"]


def long_names():
    for at in (*range(196, 202), *range(247, 253)):  # lengths around the limit and cuts inside sequences and escapes
        for piece in ("a", "/", "\u00e9", "\u20ac", "\U0001f600", "%", "\x7f", ".", "\0"):
            yield "b" * at + piece
            yield "b" * at + piece * 20
    yield "\U0001f600" * 300
    yield "/" * 100
    yield "." * 252


def random_names(rng):
    alphabet = "ab./%\\\"~ \x00\x1f\x7f\u00e9\u20ac\U0001f600"
    for _ in range(50):
        yield "".join(rng.choice(alphabet) for _ in range(rng.randrange(0, 110)))


def shapes(rng):
    yield from ([], [0], [7], [2 ** 64 - 1], [1, 2], [0, 2 ** 63], [2 ** 64 - 1] * 8, [3] * 32, [12] * 300)
    for _ in range(50):
        yield [rng.randrange(10 ** rng.randrange(1, 19)) for _ in range(rng.randrange(0, 12))]


def main():
    rng = random.Random(1)
    with open(os.path.join(HERE, "tree_vectors.txt"), "w", encoding="ascii") as out:
        for name in dict.fromkeys([*golden_names(), *long_names(), *random_names(rng), "", ".", "..", "..."]):
            out.write("name %s %s\n" % (name.encode().hex() or "-", file_name(name, ".npy").encode().hex()))
        for shape in shapes(rng):
            descr = rng.choice(["<f4", "|u1", "<c16"])
            text = ",".join(map(str, shape)) or "-"
            out.write("npy %s %s %s\n" % (descr, text, npy_header(descr, shape).hex()))


if __name__ == "__main__":
    main()
