#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The mounted tree against the real libraries: interop.py SRCDIR BUILDDIR MODELS

Every tensor that the safetensors library reads from a file must be what NumPy reads from the mount, widened types must
be what ml_dtypes makes of them, and what export/ holds must open in the real library.
"""
import contextlib
import json
import pathlib
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
WIDE = {"BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
        "F8_E8M0": ml_dtypes.float8_e8m0fnu, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
        "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz}
PLAIN = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "|i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "U8": "|u1",
         "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "|b1", "C64": "<c8"}


@contextlib.contextmanager
def mounted(path):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([BUILDDIR / "ckptfs", path, folder], check=True)
        try:
            yield pathlib.Path(folder)
        finally:
            subprocess.run([BUILDDIR / "ckptfs", "-u", folder], check=True)


def opens(path):
    """Whether the real library accepts the file."""
    try:
        with safetensors.safe_open(path, framework="np") as file:
            file.keys()
        return True
    except safetensors.SafetensorError:
        return False


def verifies(path):
    """Whether `ckpt verify` accepts the file."""
    done = subprocess.run([BUILDDIR / "ckpt", "verify", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in (0, 3):
        raise AssertionError("%s: exit status %d" % (path, done.returncode))
    return done.returncode == 0


def library_rows(path):
    """{name: (dtype, shape, stored bytes)} as the real library parses the file."""
    return {name: (row["dtype"], row["shape"], bytes(row["data"]))
            for name, row in safetensors.deserialize(pathlib.Path(path).read_bytes())}


def as_numpy(dtype, shape, data):
    """What the .npy view must load as."""
    if dtype in WIDE:
        return np.frombuffer(data, WIDE[dtype]).astype(np.float32).reshape(shape)
    return np.frombuffer(data, PLAIN[dtype]).reshape(shape)


def same(got, want):
    """Equal bits, but for which NaN stands for a NaN."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if got.dtype.kind in "fc":
        nan = np.isnan(want)
        if not np.array_equal(np.isnan(got), nan):
            return False
        got, want = got[~nan], want[~nan]
    return got.tobytes() == want.tobytes()


class Interop(unittest.TestCase):
    def check_mount(self, mount, rows):
        index = json.loads((mount / "tensors.json").read_text())["tensors"]
        self.assertEqual(index.keys(), rows.keys())
        for name, (dtype, shape, data) in rows.items():
            entry = index[name]
            self.assertEqual((entry["dtype"], entry["shape"]), (dtype, list(shape)), name)
            self.assertEqual((mount / entry["raw"]).read_bytes(), data, name)
            if data == b"" and max(shape, default=0) > sys.maxsize // 8:
                continue  # no element, but extents that NumPy cannot hold
            if dtype in WIDE or dtype in PLAIN:
                self.assertTrue(same(np.load(mount / entry["npy"]), as_numpy(dtype, shape, data)), name)
                self.assertTrue(same(np.array(np.load(mount / entry["npy"], mmap_mode="r" if data else None)),
                                     as_numpy(dtype, shape, data)), name)
            else:
                self.assertIsNone(entry["npy"], name)

    def test_real_models(self):
        found = 0
        for wheel in sorted(MODELS.glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
                for member in archive.namelist():
                    if member.endswith(".safetensors"):
                        path = archive.extract(member, folder)
                        with self.subTest(member), mounted(path) as mount:
                            self.check_mount(mount, library_rows(path))
                        found += 1
        self.assertGreaterEqual(found, 3)

    def test_golden_safetensors(self):
        for case in MANIFEST:
            if case["format"] != "safetensors":
                continue
            path = GOLDEN / case["file"]
            with self.subTest(case["file"]):
                # Readers may reasonably differ on the ambiguous ones: there the library decides.
                accepted = opens(path) if case.get("ambiguous") else case["valid"]
                self.assertEqual(verifies(path), accepted)
                if accepted:
                    self.assertTrue(opens(path))
                    with mounted(path) as mount:
                        self.check_mount(mount, library_rows(path))

    def test_every_value_of_the_wide_types(self):
        tensors = {}
        for dtype, kind in WIDE.items():
            width = np.dtype(kind).itemsize
            tensors[dtype] = np.arange(256 ** width, dtype="<u%d" % width).tobytes()
        header, at = {}, 0
        for dtype, data in tensors.items():
            header[dtype] = {"dtype": dtype, "shape": [len(data) // np.dtype(WIDE[dtype]).itemsize],
                             "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header).encode()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "wide.safetensors"
            path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(tensors.values()))
            with mounted(path) as mount:
                for dtype, data in tensors.items():
                    want = np.frombuffer(data, WIDE[dtype]).astype(np.float32)
                    self.assertTrue(same(np.load(mount / "tensors" / (dtype + ".npy")), want), dtype)

    def test_exports_open_in_the_real_library(self):
        exported = 0
        for case in MANIFEST:
            if not case["valid"] or case["format"] not in ("oam", "safetensors-index"):
                continue
            with self.subTest(case["file"]), mounted(GOLDEN / case["file"]) as mount:
                index = json.loads((mount / "tensors.json").read_text())
                for export, group in (("model", "tensors"), ("state", "state")):
                    path = mount / "export" / (export + ".safetensors")
                    want = {n: e for n, e in index[group].items() if e["dtype"] != "C128"}
                    if not path.exists():
                        self.assertEqual(index[group], {})
                        continue
                    rows = library_rows(path)
                    self.assertEqual(rows.keys(), want.keys())
                    for name, (dtype, shape, data) in rows.items():
                        entry = want[name]
                        quantized = entry["encoding"] != "dense"
                        self.assertEqual((dtype, list(shape)), ("F32" if quantized else entry["dtype"], entry["shape"]))
                        if quantized:
                            stored = np.load(mount / entry["npy"]).tobytes()
                        else:
                            stored = (mount / entry["raw"]).read_bytes()
                        self.assertEqual(data, stored, name)
                    exported += 1
        self.assertGreater(exported, 50)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
