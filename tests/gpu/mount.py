#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""-o gpu: every golden tensor on the device is what its .npy view holds, bit for bit, to whatever it is converted."""
import ast
import json
import os

import mounting
from mounting import lib
import numpy

PLAIN_MAX = 10  # of a file's tensors that are stored as NumPy has them: one file has thousands
TARGETS = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
FLOATS = ("F32", "F16", "BF16", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E5M2FNUZ", "F8_E4M3FNUZ")
SHOWN = {"F16": "<u2", "BF16": "<u2", "F32": "<u4"}
EXPONENTS = {"F32": (0x7f800000, 0x7fffffff), "F16": (0x7c00, 0x7fff), "BF16": (0x7f80, 0x7fff)}
count = 0


def narrowed(values, dtype):
    """float32 to the words of that type, rounded to nearest, ties to even."""
    if dtype == "F16":
        with numpy.errstate(over="ignore", invalid="ignore"):
            return values.astype("<f2").view("<u2")
    words = values.view("<u4")
    if dtype == "F32":
        return words
    wide = words.astype(numpy.uint64)
    return ((wide + 0x7fff + (wide >> 16 & 1)) >> 16 & 0xffff).astype("<u2")


def same(got, values, dtype):
    """Bit for bit, but that NaNs only have to be NaNs where they were narrowed or widened."""
    got, want = numpy.frombuffer(got, SHOWN[dtype]), narrowed(values, dtype)
    if len(got) != len(want):
        return False
    exponent, mask = EXPONENTS[dtype]
    nan = numpy.isnan(values)
    return bool(((got == want) | nan).all() and ((got[nan] & mask) > exponent).all())


def view(name):
    """The values of the .npy, flat: NumPy does not take every shape."""
    with open(os.path.join(lib.MOUNT, "tensors", name + ".npy"), "rb") as stream:
        size = int.from_bytes(stream.read(10)[8:], "little")
        descr = ast.literal_eval(stream.read(size).decode())["descr"]
        return numpy.frombuffer(stream.read(), descr)


def check_tensor(where, name, known, target):
    """known: what tensors.json says of it."""
    global count
    count += 1
    info, got = mounting.content(name)
    converts = known["encoding"] != "dense" or (target != "stored" and known["dtype"] in FLOATS)
    dtype = TARGETS.get(target, "F32") if converts else known["dtype"]
    lib.want(info["name"] == known["name"] and info["shape"] == known["shape"] and info["dtype"] == dtype
             and info["bytes"] == len(got), "%s: %s", where, info)
    if not converts:
        lib.want(got == mounting.stored(name), "%s: not the stored bytes", where)
    elif known["encoding"] != "dense" and target == "stored":
        lib.want(got == view(name).tobytes(), "%s: not the bytes of the .npy", where)
    else:
        lib.want(same(got, view(name).astype("<f4"), dtype), "%s: not the values of the .npy", where)


def check_file(file, target, *options):
    with mounting.mounted(os.path.join(lib.GOLDEN, file), "gpu_dtype=" + target, *options, what=file) as mount:
        with open(os.path.join(mount, "tensors.json"), encoding="utf-8") as stream:
            known = {row["raw"].split("/")[-1][:-4]: {**row, "name": name}
                     for name, row in json.load(stream)["tensors"].items()}
        names = [entry[:-5] for entry in os.listdir(os.path.join(mount, "gpu", "tensors"))]
        plain = [name for name in names if known[name]["encoding"] == "dense" and known[name]["dtype"] not in FLOATS[1:]]
        for name in sorted(set(names) - set(plain[PLAIN_MAX:])):
            check_tensor("%s: %s as %s" % (file, name, target), name, known[name], target)


with open(os.path.join(lib.GOLDEN, "manifest.json"), encoding="utf-8") as manifest:
    cases = [case for case in json.load(manifest) if case["valid"] and not case.get("ambiguous")]
for number, golden in enumerate(cases):
    check_file(golden["file"], "stored")
    if golden["format"] != "envelope":
        check_file(golden["file"], ("f32", "f16", "bf16")[number % 3], "gpu_share=fd")
print("%d tensors" % count)
lib.want(count > 300, "only %d tensors", count)
lib.want(not mounting.log(), "the log has lines")
lib.finish()
