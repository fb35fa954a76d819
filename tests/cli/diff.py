#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt diff` against numbers computed here: every type, every pair of types, formats, damage, reading once."""
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction

from cli import CKPT, GOLDEN, Faults, ckpt

import expected_tree
import oam_writer
from extract import content, tensors_file

MODEL = os.path.join(GOLDEN, "oam/valid/transformer_adamw.oam")
INTEGERS = {"I8": "b", "U8": "B", "BOOL": "B", "I16": "h", "U16": "H", "I32": "i", "U32": "I", "I64": "q", "U64": "Q"}
FLOATS = {"F16": "e", "F32": "f", "F64": "d"}
WIDENED = sorted(expected_tree.WIDENED)
TYPES = sorted(INTEGERS) + sorted(FLOATS) + WIDENED + ["C64"]


def bits_of(dtype):
    return expected_tree.BITS[dtype]


def f64_bits(value):
    return struct.pack("<d", value)


# ---- what is right


def values(dtype, data):
    """Tuples of exact numbers: ints, floats, or real and imaginary parts."""
    if dtype in INTEGERS:
        return [(v,) for v in struct.unpack("<%d%s" % (len(data) * 8 // bits_of(dtype), INTEGERS[dtype]), data)]
    if dtype in WIDENED:
        return values("F32", expected_tree.widen(dtype, data))
    if dtype in ("C64", "C128"):
        parts = values({"C64": "F32", "C128": "F64"}[dtype], data)
        return [(a[0], b[0]) for a, b in zip(parts[::2], parts[1::2])]
    return [(v,) for v in struct.unpack("<%d%s" % (len(data) * 8 // bits_of(dtype), FLOATS[dtype]), data)]


def is_nan(value):
    return any(isinstance(part, float) and math.isnan(part) for part in value)


def apart(a, b):
    """Distance of two parts: exact between finite ones."""
    if a == b:
        return Fraction(0)
    if any(isinstance(v, float) and math.isinf(v) for v in (a, b)):
        return math.inf
    return abs(Fraction(a) - Fraction(b))


def distance(a, b):
    parts = [apart(x, y) for x, y in zip(a + (0,), b + (0,))]
    if math.inf in parts:
        return math.inf
    return parts[0] if parts[1] == 0 else Fraction(math.hypot(*map(float, parts)))


def same_value(a, b):
    def same(x, y):
        nan = [isinstance(v, float) and math.isnan(v) for v in (x, y)]
        return f64_bits(x) == f64_bits(y) if all(nan) else x == y
    return all(same(x, y) for x, y in zip((a + (0,))[:2], (b + (0,))[:2]))


def right(a_type, a, b_type, b):
    """elements, differing, nans, max, mean; of one type what is stored counts."""
    one = a_type == b_type
    shown = [expected_tree.widen(a_type, data) if one and a_type in WIDENED else data for data in (a, b)]
    left, right_values = values(a_type, a), values(b_type, b)
    width = len(shown[0]) // max(len(left), 1)
    differing = nans = 0
    most, total = Fraction(0), Fraction(0)
    for i, (x, y) in enumerate(zip(left, right_values)):
        if shown[0][i * width:(i + 1) * width] == shown[1][i * width:(i + 1) * width] if one else same_value(x, y):
            continue
        differing += 1
        if is_nan(x) or is_nan(y):
            nans += 1
            continue
        gap = distance(x, y)
        most, total = max(most, gap), total + gap
    count = len(left) - nans
    return len(left), differing, nans, most, total / count if count else 0


def close(got, want, tolerance):
    if want == math.inf:
        return got == "Infinity"
    if isinstance(got, str):
        return False
    return abs(Fraction(got) - Fraction(want)) <= tolerance * Fraction(want)


def check_numbers(faults, name, row, want):
    elements, differing, nans, most, mean = want
    got = {key: row.get(key) for key in ("elements", "differing", "nans", "max_abs", "mean_abs")}
    exact = isinstance(got["max_abs"], int)
    holds = (got["elements"], got["differing"], got["nans"]) == (elements, differing, nans)
    # F64 distances round once each, and overflow as doubles do
    big = most != math.inf and most > Fraction(sys.float_info.max)
    faults.check(holds and (big or close(got["max_abs"], most, 0 if exact else Fraction(1, 1 << 51)) and
                            close(got["mean_abs"], mean, Fraction(1, 10 ** 12))),
                 "%s: %s, want %s %s %s %r %r" % (name, got, elements, differing, nans, most, mean))


def differences(faults, a, b, code=1):
    status, out, err = ckpt("diff", "--json", a, b)
    faults.check(status == code and err == "", "diff %s %s: exit %d: %s" % (a, b, status, err))
    found = json.loads(out)
    faults.check(found["equal"] == (code == 0) and (not found["differences"]) == (code == 0), "equal: %s" % found)
    return {(row["place"], row["name"]): row for row in found["differences"]}


# ---- numbers


def random_data(rng, dtype, count):
    size = count * bits_of(dtype) // 8
    if dtype == "BOOL":
        return bytes(rng.randrange(2) for _ in range(count))
    kind = rng.randrange(3)
    if kind == 0 or dtype not in ("F32", "F64", "C64"): # any bits: NaNs and infinities, too
        return rng.randbytes(size)
    code, width = ("d", 8) if dtype == "F64" else ("f", 4)
    return b"".join(struct.pack("<" + code, rng.gauss(0, 1) * 10 ** rng.randrange(-3, 4)) for _ in range(size // width))


def altered(rng, dtype, data, share):
    width = bits_of(dtype) // 8
    out = bytearray(data)
    for at in range(0, len(out), width):
        if rng.random() < share:
            out[at:at + width] = random_data(rng, dtype, 1)
    return bytes(out)


def check_types(faults, work):
    """Each type against itself, with few and with many elements that differ, over the borders of pieces."""
    rng = random.Random(7)
    a, b, want = {}, {}, {}
    for dtype in TYPES:
        for share, count in ((0.01, 3000), (1, 777), (0.5, 65536 + 5 if dtype in ("F32", "I64", "BF16") else 100)):
            name = "%s.%d" % (dtype, count)
            data = random_data(rng, dtype, count)
            other = altered(rng, dtype, data, share)
            a[name], b[name] = (dtype, [count], data), (dtype, [count], other)
            if data != other:
                want[name] = right(dtype, data, dtype, other)
    pair = [os.path.join(work, name) for name in ("a.safetensors", "b.safetensors")]
    tensors_file(pair[0], a)
    tensors_file(pair[1], dict(reversed(b.items())))
    found = differences(faults, *pair)
    faults.check(set(found) == {("tensors", name) for name in want}, "types: %s" % sorted(found))
    for name, numbers in want.items():
        check_numbers(faults, name, found.get(("tensors", name), {}), numbers)


def check_pairs(faults, work):
    """Each type against each other one."""
    rng = random.Random(8)
    special = {"F32": [0.0, -0.0, math.inf, -math.inf, 2.0 ** 63, 1.0], "F64": [0.0, -0.0, math.inf, 2.0 ** 53, 1e300, 2.0 ** 64]}
    a, b, want = {}, {}, {}
    for left in TYPES:
        for other in TYPES:
            if left == other:
                continue
            name, count = left + ">" + other, 40
            first, second = random_data(rng, left, count), random_data(rng, other, count)
            if left in ("I64", "U64") and other == "F64": # what a double would round
                first = struct.pack("<4q", 2 ** 53 + 1, 2 ** 53, 2 ** 62 + 1, 5) + first[32:]
                second = struct.pack("<4d", 2.0 ** 53, 2.0 ** 53, 2.0 ** 62, 5) + second[32:]
            if left in special:
                code = FLOATS[left]
                size = 6 * bits_of(left) // 8
                first = struct.pack("<6" + code, *special[left]) + first[size:]
            a[name], b[name] = (left, [count], first), (other, [count], second)
            want[name] = right(left, first, other, second)
    pair = [os.path.join(work, name) for name in ("a.safetensors", "b.safetensors")]
    tensors_file(pair[0], a)
    tensors_file(pair[1], b)
    found = differences(faults, *pair)
    for name, numbers in want.items():
        row = found.get(("tensors", name), {})
        check_numbers(faults, name, row, numbers)
        faults.check(row.get("retyped") is True and row.get("reshaped") is False, "%s: %s" % (name, row))


def check_numpy(faults, work):
    """A larger tensor against NumPy, which adds pairwise."""
    try:
        import numpy
    except ImportError:
        print("no NumPy: its numbers are not compared")
        return
    rng = numpy.random.default_rng(9)
    for dtype, code in (("F32", "<f4"), ("F64", "<f8"), ("F16", "<f2"), ("I32", "<i4"), ("C64", "<c8")):
        a = (rng.standard_normal(300000) * 100).astype(code)
        b = a.copy()
        b[::3] += rng.standard_normal(100000).astype(code) + numpy.array(1, code)
        pair = [os.path.join(work, name) for name in ("a.safetensors", "b.safetensors")]
        tensors_file(pair[0], {"w": (dtype, [300, 1000], a.tobytes())})
        tensors_file(pair[1], {"w": (dtype, [300, 1000], b.tobytes())})
        row = differences(faults, *pair).get(("tensors", "w"), {})
        wide = "<c16" if dtype == "C64" else "<f8"
        gaps = numpy.abs(a.astype(wide) - b.astype(wide))
        faults.check(abs(row["max_abs"] - gaps.max()) <= 1e-15 * gaps.max() and row["differing"] == (a != b).sum() and
                     abs(row["mean_abs"] - math.fsum(gaps) / 300000) <= 1e-13 * row["mean_abs"],
                     "%s: %s, NumPy has %r, %r" % (dtype, row, gaps.max(), gaps.mean()))


def check_exact(faults, work):
    """What is easily got wrong: 64-bit integers, NaNs with other bits, signs of zero, cancellation."""
    nan = struct.pack("<I", 0x7fc00000), struct.pack("<I", 0x7fc00001), struct.pack("<I", 0x7f800001)
    cases = {
        "i64": ("I64", struct.pack("<2q", -2 ** 63, 5), struct.pack("<2q", 2 ** 63 - 1, 5)),
        "u64": ("U64", struct.pack("<2Q", 2 ** 64 - 1, 2 ** 53), struct.pack("<2Q", 1, 2 ** 53 + 1)),
        "nan same": ("F32", nan[0] + b"\0\0\0\0", nan[0] + struct.pack("<f", 2.5)),
        "nan quiet": ("F32", nan[1] + b"\0\0\0\0", nan[2] + b"\0\0\0\0"),
        "zero": ("F32", struct.pack("<2f", 0.0, 1.0), struct.pack("<2f", -0.0, 1.0)),
        "inf": ("F64", struct.pack("<3d", math.inf, -math.inf, 1), struct.pack("<3d", math.inf, math.inf, 1)),
        "c": ("C64", struct.pack("<4f", math.inf, 1, 3, 4), struct.pack("<4f", math.inf, 3, 0, 0)),
        "small and large": ("F64", struct.pack("<4d", 1e16, 1, 1, 1), struct.pack("<4d", 0, 0, 0, 0)),
    }
    want = {"i64": (2, 1, 0, 2 ** 64 - 1, 2.0 ** 63), "u64": (2, 2, 0, 2 ** 64 - 2, 2.0 ** 63),
            "nan same": (2, 1, 0, 2.5, 1.25), "nan quiet": (2, 1, 1, 0, 0), "zero": (2, 1, 0, 0, 0),
            "inf": (3, 1, 0, "Infinity", "Infinity"), "c": (2, 2, 0, 5, 3.5),
            "small and large": (4, 4, 0, 1e16, 2500000000000000.75)}
    pair = [os.path.join(work, name) for name in ("a.safetensors", "b.safetensors")]
    for at, path in enumerate(pair, 1):
        tensors_file(path, {name: (case[0], [len(case[1]) * 8 // bits_of(case[0])], case[at])
                            for name, case in cases.items()})
    found = differences(faults, *pair)
    for name, numbers in want.items():
        row = found.get(("tensors", name), {})
        got = tuple(row.get(key) for key in ("elements", "differing", "nans", "max_abs", "mean_abs"))
        faults.check(got == numbers, "%s: %s, want %s" % (name, got, numbers))


# ---- structure


def check_structure(faults, work):
    one = struct.pack("<6f", 1, 2, 3, 4, 5, 6)
    a = {"gone": ("F32", [6], one), "shape": ("F32", [2, 3], one), "less": ("F32", [6], one), "type": ("F32", [6], one),
         "odd\n\u00e4": ("U8", [1], b"a"), "nul\0x": ("U8", [1], b"a"), "four": ("F4", [4], b"ab"), "same": ("F32", [6], one)}
    b = {"new": ("I8", [2, 0], b""), "shape": ("F32", [3, 2], one), "less": ("F32", [5], one[:20]),
         "type": ("F64", [6], struct.pack("<6d", 1, 2, 3, 4, 5, 6)), "odd\n\u00e4": ("U8", [1], b"c"),
         "nul\0x": ("U8", [1], b"d"), "four": ("F4", [4], b"ac"), "same": ("F32", [6], one)}
    pair = [os.path.join(work, name) for name in ("a.safetensors", "b.safetensors")]
    tensors_file(pair[0], a)
    tensors_file(pair[1], b)
    found = differences(faults, *pair)
    names = {name for _, name in found}
    faults.check(names == (set(a) | set(b)) - {"same"}, "names: %s" % names)
    rows = {name: found.get(("tensors", name), {}) for name in names}
    faults.check(rows["gone"]["kind"] == "removed" and rows["gone"]["b"] is None and "elements" not in rows["gone"], rows["gone"])
    faults.check(rows["new"]["kind"] == "added" and rows["new"]["b"]["shape"] == [2, 0], rows["new"])
    faults.check(rows["shape"]["reshaped"] and not rows["shape"]["retyped"] and rows["shape"]["differing"] == 0, rows["shape"])
    faults.check(rows["less"]["reshaped"] and "elements" not in rows["less"], rows["less"])
    faults.check(rows["type"]["retyped"] and rows["type"]["differing"] == 0 and rows["type"]["elements"] == 6, rows["type"])
    faults.check(rows["four"]["kind"] == "changed" and "elements" not in rows["four"], rows["four"])
    code, out, err = ckpt("diff", *pair)
    lines = out.decode("utf-8").split("\n")
    faults.check(code == 1 and err == "" and any(
        line.startswith("retyped ") and line.endswith("tensors/type  F32 -> F64 [6]") and "none of 6" in line
        for line in lines), "for people: %s" % out)
    faults.check(any(line.endswith("tensors/shape  F32 [2, 3] -> [3, 2]") for line in lines), "for people: %s" % out)
    for options in (["-q"], ["--quiet"]):
        faults.check(ckpt("diff", *options, *pair) == (1, b"", ""), "diff -q")
        faults.check(ckpt("diff", *options, pair[0], pair[0]) == (0, b"", ""), "diff -q of the same")


def changed_model(work, name, edit):
    """transformer_adamw with its extracted tree edited."""
    folder, path = os.path.join(work, "tree"), os.path.join(work, name)
    faults = ckpt("extract", MODEL, folder)[0]
    edit(folder)
    done = ckpt("pack", folder, path)
    subprocess.run(["rm", "-rf", folder], check=True)
    assert faults == 0 and done[0] == 0, done
    return path


def flip(path, at):
    """One bit of what is stored; its array, which would contradict it, goes."""
    data = bytearray(content(path))
    data[at] ^= 0x80
    with open(path, "wb") as stream:
        stream.write(data)
    array = path.replace("/raw/", "/").replace(".bin", ".npy")
    if os.path.exists(array):
        os.remove(array)


def set_member(path, key, value):
    document = json.loads(content(path))
    document[key] = value
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(document, stream)


def check_model(faults, work):
    """Documents, state and moments of .oam files, and an .oam against its tensors as safetensors."""
    def edit(folder):
        set_member(folder + "/progress.json", "step", 2 ** 62 + 1)
        set_member(folder + "/config.json", "d_model", 17)
        set_member(folder + "/optimizer/optimizer.json", "learning_rate", 0.5)
        flip(folder + "/raw/state/cache.0.bin", 3)
        flip(folder + "/raw/optimizer/second_moment.bin", 7)
        flip(folder + "/raw/arch_config.bin", 0)
    other = changed_model(work, "other.oam", edit)
    found = differences(faults, MODEL, other)
    faults.check(found.get(("progress.json", "step"), {}).get("b") == 2 ** 62 + 1, "step: %s" % found.get(("progress.json", "step")))
    for key in (("config.json", "d_model"), ("optimizer/optimizer.json", "learning_rate"), ("state", "cache.0"),
                ("optimizer", "second_moment"), ("raw/arch_config.bin", ""), ("config.json", "arch_config")):
        faults.check(found.get(key, {}).get("kind") == "changed", "%s: %s" % (key, found.get(key)))
    faults.check(len(found) == 7 and found[("state", "cache.0")]["differing"] == 1, "no more than these: %s" % sorted(found))
    faults.check(differences(faults, MODEL, MODEL, 0) == {}, "the same file")
    export = os.path.join(work, "model.safetensors")
    with open(export, "wb") as stream:
        stream.write(ckpt("cat", MODEL, "export/model.safetensors")[1])
    found = differences(faults, MODEL, export)
    faults.check(found and not any(place == "tensors" for place, _ in found), "the export has the same tensors: %s" % sorted(found))
    dense, packed = (os.path.join(GOLDEN, "oam/quantized/small_%s.oam" % kind) for kind in ("dense", "q4"))
    with open(export, "wb") as stream:
        stream.write(ckpt("cat", packed, "export/model.safetensors")[1])
    found = differences(faults, packed, export)
    rows = [row for (place, _), row in found.items() if place == "tensors"]
    faults.check(rows and all(row["retyped"] and row["differing"] == 0 for row in rows), "Q4 as float32: %s" % rows)
    found = differences(faults, dense, packed)
    zero = found.get(("tensors", "blk.0.zero.weight"), {})
    faults.check(zero.get("differing") == 0 and zero["b"]["encoding"] == "q4", "zeros as Q4: %s" % zero)
    metadata = [os.path.join(work, name) for name in ("a.safetensors", "b.safetensors")]
    for path, text in zip(metadata, (b'{"__metadata__":{"k":"\\u00e9","n":"1"}}', '{"__metadata__":{"n":"2","k":"é"}}'.encode())):
        with open(path, "wb") as stream:
            stream.write(struct.pack("<Q", len(text)) + text)
    found = differences(faults, *metadata)
    faults.check(set(found) == {("metadata.json", "n")}, "metadata: %s" % sorted(found))
    payloads = [os.path.join(GOLDEN, "envelope/accepted", name) for name in ("one_byte.ckpt", "whole_chunks_and_tail.ckpt")]
    faults.check(("envelope/payload.bin", "") in differences(faults, *payloads), "payloads")


def check_nans(faults, work):
    """Documents say "NaN" of any NaN; two of them are the same where their bits are."""
    paths = [os.path.join(work, name) for name in ("a.oam", "b.oam")]
    for part, place, members in (("progress", "progress.json", ("learning_rate", "best_metric")),
                                 ("optimizer", "optimizer/optimizer.json", oam_writer.FLOATS)):
        for member in members:
            for bits, code in (((0x7fc00000, 0xffc12345), 1), ((0x7fc00001, 0x7fc00001), 0), ((0x7fc00000, 0x3f800000), 1)):
                for path, value in zip(paths, bits):
                    model = oam_writer.model_of(content(MODEL))
                    for name in members:
                        model[part][name] = 0x7f812345
                    model[part][member] = value
                    with open(path, "wb") as stream:
                        stream.write(oam_writer.write(model))
                found = differences(faults, *paths, code)
                row = found.get((place, member), {})
                want = ["NaN (%08x)" % value if bits[1] == 0xffc12345 else "NaN" if value > 0x7f800000 else 1 for value in bits]
                faults.check(len(found) == code and (not code or [row.get("a"), row.get("b")] == want),
                             "%s of %s: %s: %s" % (member, place, bits, found))


def check_same(faults):
    with open(os.path.join(GOLDEN, "manifest.json"), encoding="utf-8") as stream:
        cases = json.load(stream)
    for case in cases:
        if case["valid"]:
            path = os.path.join(GOLDEN, case["file"])
            faults.check(ckpt("diff", path, path) == (0, b"", ""), "%s differs from itself" % case["file"])


# ---- damage


def check_damage(faults, work):
    data = content(MODEL)
    sections = expected_tree.oam_tree(data)[2]["sections"]
    bad = os.path.join(work, "bad.oam")
    for row in sections:
        for at in (row["offset"], row["offset"] + row["size"] // 2, row["offset"] + row["size"] - 1):
            broken = bytearray(data)
            broken[at] ^= 1
            with open(bad, "wb") as stream:
                stream.write(broken)
            for pair in ((MODEL, bad), (bad, MODEL)):
                code, out, err = ckpt("diff", *pair)
                faults.check(code == 3 and out == b"" and bad in err, "%s damaged at %d: exit %d, %s %s" % (
                    row["kind"], at, code, out[:80], err))
    name = os.path.join(GOLDEN, "envelope/accepted/holds_oam.ckpt")
    broken = bytearray(content(name))
    broken[-1] ^= 1
    with open(bad, "wb") as stream:
        stream.write(broken)
    code, out, err = ckpt("diff", "--json", name, bad)
    faults.check(code == 3 and out == b"" and "chunk-mismatch" in err, "a damaged chunk: %d %s" % (code, err))
    code, out, err = ckpt("diff", MODEL, os.path.join(work, "none"))
    faults.check(code == 2 and out == b"" and "No such file" in err, "no file: %d %s" % (code, err))
    code, _, err = ckpt("diff", "/etc/passwd", MODEL)
    faults.check(code == 3 and err, "no checkpoint: %d %s" % (code, err))


# ---- size


def bytes_read(*arguments):
    """(exit code, bytes that the process asked the kernel for)"""
    with subprocess.Popen([CKPT, *arguments], stdout=subprocess.DEVNULL) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        try:
            with open("/proc/%d/io" % process.pid, encoding="ascii") as stream:
                read = int(stream.readline().split()[1])
        except OSError:
            read = None
        process.wait()
    return process.returncode, read


def check_once(faults, work):
    """Large sections are hashed and compared in one reading."""
    rng, folder = random.Random(3), os.path.join(work, "spec")
    os.mkdir(folder)
    count, size = 40, 1 << 20
    spec = json.loads(content(os.path.join(GOLDEN, "oam/write/minimal_named/spec.json")))
    spec["config"].pop("arch_config", None)
    spec["state"], spec["optimizer"] = [], None
    spec["weights"] = [{"name": "w%d" % i, "dtype": "F32", "shape": [size // 4], "encoding": "dense", "block_size": 0,
                        "data": "w%d.bin" % i} for i in range(count)]
    for i in range(count):
        with open(os.path.join(folder, "w%d.bin" % i), "wb") as stream:
            stream.write(rng.randbytes(size))
    pair = [os.path.join(work, name) for name in ("a.oam", "b.oam")]
    for path in pair:
        with open(folder + "/spec.json", "w", encoding="utf-8") as stream:
            json.dump(spec, stream)
        code, _, err = ckpt("pack", folder + "/spec.json", path)
        faults.check(code == 0, "pack: %s" % err)
        with open(os.path.join(folder, "w17.bin"), "r+b") as stream:
            stream.write(b"abcd")
    code, read = bytes_read("diff", *pair)
    both = sum(os.stat(path).st_size for path in pair)
    faults.check(code == 1 and (read is None or both * 0.99 < read < both * 1.03), "read %s of %d" % (read, both))
    found = differences(faults, *pair)
    faults.check(set(found) == {("tensors", "w17")} and found[("tensors", "w17")]["differing"] == 1, sorted(found))
    subprocess.run(["rm", "-rf", folder], check=True)


def check_many(faults, work):
    count = 100000
    pair = [os.path.join(work, name) for name in ("a.safetensors", "b.safetensors")]
    a = {"layer.%d" % i: ("U16", [1], struct.pack("<H", i % 65536)) for i in range(count)}
    b = dict(reversed(list(a.items())))
    b["layer.777"] = ("U16", [1], b"\0\0")
    b["extra"] = b.pop("layer.5")
    tensors_file(pair[0], a)
    tensors_file(pair[1], b)
    found = differences(faults, *pair)
    faults.check({name: row["kind"] for (_, name), row in found.items()} == {
        "layer.777": "changed", "layer.5": "removed", "extra": "added"}, "many: %s" % found)


def main():
    faults = Faults()
    with tempfile.TemporaryDirectory() as work:
        for check in (check_types, check_pairs, check_numpy, check_exact, check_structure, check_model, check_nans,
                      check_damage, check_once, check_many):
            check(faults, work)
            subprocess.run(["find", work, "-mindepth", "1", "-delete"], check=True)
        check_same(faults)
    return faults.finish(700)


if __name__ == "__main__":
    sys.exit(main())
