#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""-o gpu: every golden tensor on the device is what its .npy view holds, bit for bit, to whatever it is converted."""
import ast
import errno
import json
import os
import struct

import mounting
from mounting import lib

PLAIN_MAX = 10  # of a file's tensors that are stored as NumPy has them: one file has thousands
TARGETS = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
FLOATS = ("F32", "F16", "BF16", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E5M2FNUZ", "F8_E4M3FNUZ")
LARGEST = {"F32": 0x7f800000, "F16": 0x7c00, "BF16": 0x7f80}  # infinity: beyond it are NaNs
count = 0


# ---- values, as numbers of 16 or 32 bits -----------------------------------------------------------------------------

def words(data, size):
    return struct.unpack("<%d%s" % (len(data) // size, {2: "H", 4: "I"}[size]), data)


def is_nan(word, dtype):
    return word & (0x7fffffff if dtype == "F32" else 0x7fff) > LARGEST[dtype]


def as_f32(half):
    if half & 0x7c00 == 0x7c00:
        return (half & 0x8000) << 16 | 0x7f800000 | (half & 0x3ff) << 13
    return words(struct.pack("<f", *struct.unpack("<e", struct.pack("<H", half))), 4)[0]


def as_f16(word):
    """Rounded to nearest, ties to even, by Python."""
    try:
        return words(struct.pack("<e", *struct.unpack("<f", struct.pack("<I", word))), 2)[0]
    except OverflowError:
        return word >> 16 & 0x8000 | 0x7c00


def as_bf16(word):
    return word + 0x7fff + (word >> 16 & 1) >> 16 & 0xffff


NARROW = {"F32": lambda word: word, "F16": as_f16, "BF16": as_bf16}


def same(got, values, dtype):
    """Bit for bit, but that NaNs only have to be NaNs: they were converted."""
    got = words(got, 4 if dtype == "F32" else 2)
    return len(got) == len(values) and all(
        is_nan(one, dtype) if is_nan(value, "F32") else one == NARROW[dtype](value) for one, value in zip(got, values))


def view(name):
    """What the .npy holds: its bytes, and float32 words of them."""
    with open(os.path.join(lib.MOUNT, "tensors", name + ".npy"), "rb") as stream:
        size = int.from_bytes(stream.read(10)[8:], "little")
        descr = ast.literal_eval(stream.read(size).decode())["descr"]
        data = stream.read()
    return data, words(data, 4) if descr == "<f4" else [as_f32(half) for half in words(data, 2)]


# ---- tensors and files -----------------------------------------------------------------------------------------------

def check_tensor(where, name, known, target, able):
    """known: what tensors.json says of it."""
    global count
    count += 1
    converts = known["encoding"] != "dense" or (target != "stored" and known["dtype"] in FLOATS)
    same_already = known["encoding"] == "dense" and TARGETS.get(target) == known["dtype"]
    if converts and not same_already and not able:
        lib.want(mounting.error_of(name) == errno.EIO, "%s: opened without the kernels", where)
        return
    info, got = mounting.content(name)
    dtype = TARGETS.get(target, "F32") if converts else known["dtype"]
    lib.want(info["name"] == known["name"] and info["shape"] == known["shape"] and info["dtype"] == dtype
             and info["bytes"] == len(got), "%s: %s", where, info)
    if not converts:
        lib.want(got == mounting.stored(name), "%s: not the stored bytes", where)
    elif known["encoding"] != "dense" and target in ("stored", "f32"):
        lib.want(got == view(name)[0], "%s: not the bytes of the .npy", where)
    else:
        lib.want(same(got, view(name)[1], dtype), "%s: not the values of the .npy", where)


def check_file(file, target, *options):
    with mounting.mounted(os.path.join(lib.GOLDEN, file), "gpu_dtype=" + target, *options, what=file) as mount:
        with open(os.path.join(mount, "tensors.json"), encoding="utf-8") as stream:
            known = {row["raw"].split("/")[-1][:-4]: {**row, "name": name}
                     for name, row in json.load(stream)["tensors"].items()}
        able = mounting.device()["converts"]  # not in a build without nvcc
        names = [entry[:-5] for entry in os.listdir(os.path.join(mount, "gpu", "tensors"))]
        plain = [name for name in names if known[name]["encoding"] == "dense" and known[name]["dtype"] not in FLOATS[1:]]
        for name in sorted(set(names) - set(plain[PLAIN_MAX:])):
            check_tensor("%s: %s as %s" % (file, name, target), name, known[name], target, able)


with open(os.path.join(lib.GOLDEN, "manifest.json"), encoding="utf-8") as manifest:
    cases = [case for case in json.load(manifest) if case["valid"] and not case.get("ambiguous")]
for number, golden in enumerate(cases):
    check_file(golden["file"], "stored")
    if golden["format"] != "envelope":
        check_file(golden["file"], ("f32", "f16", "bf16")[number % 3], "gpu_share=fd")
print("%d tensors" % count)
lib.want(count > 300, "only %d tensors", count)
logged = [line for line in mounting.log() if "cannot be converted" not in line]  # in a build without nvcc
lib.want(not logged, "the log has lines: %s", logged[:5])
lib.finish()
