#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kind of tensor through ckptfs-gpu, read back by another process: the values of the .npy views, bit for bit (NaNs
are NaNs). With CKPTFS_TEST_GPU=real on this machine's device, else on the stand-in."""
import functools
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.environ.get("srcdir", "."), "tests"))
sys.dont_write_bytecode = True
import expected_tree
import talk
from talk import BF16, BITS, DENSE, DTYPES, F16, F32, FD, HALF, IPC, Q4, Q8, STORED, Helper, peek

RANDOM = random.Random(5)
FLOATS = ["F32", "F16", "BF16"] + [name for name in DTYPES if name.startswith("F8")]
checks = faults = 0


def check(holds, *words):
    global checks, faults
    checks += 1
    if not holds:
        faults += 1
        print("fault:", *words)


def words(data, size=4):
    """Little-endian numbers of 2 or 4 bytes."""
    return struct.unpack("<%d%s" % (len(data) // size, {2: "H", 4: "I"}[size]), data)


def f16_as_f32(half):
    if half & 0x7c00 == 0x7c00:
        return (half & 0x8000) << 16 | 0x7f800000 | (half & 0x3ff) << 13
    return words(struct.pack("<f", struct.unpack("<e", struct.pack("<H", half))[0]))[0]


def f32_as_f16(word):
    """Rounded to nearest even, by Python."""
    try:
        return words(struct.pack("<e", struct.unpack("<f", struct.pack("<I", word))[0]), 2)[0]
    except OverflowError:
        return word >> 16 & 0x8000 | 0x7c00


def f32_as_bf16(word):
    return word + 0x7fff + (word >> 16 & 1) >> 16 & 0xffff


@functools.lru_cache(maxsize=4)
def as_f32(dtype, encoding, data, elements):
    """The .npy view's values as float32 words, by the independent reader."""
    if encoding != DENSE:
        return words(expected_tree.dequantize({Q4: "q4", Q8: "q8"}[encoding], data, elements))
    if dtype == "F16":
        return tuple(f16_as_f32(half) for half in words(data, 2))
    return words(data if dtype == "F32" else expected_tree.widen(dtype, data))


def is_nan(word, target):
    exponent = {F32: 0x7f800000, F16: 0x7c00, BF16: 0x7f80}[target]
    return word & {F32: 0x7fffffff}.get(target, 0x7fff) > exponent


@functools.lru_cache(maxsize=4)
def expected(dtype, encoding, data, elements, target):
    """What the device should hold: words of the target, None for any NaN."""
    narrow = {F32: lambda word: word, F16: f32_as_f16, BF16: f32_as_bf16}[target]
    return [None if is_nan(word, F32) else narrow(word) for word in as_f32(dtype, encoding, data, elements)]


def same(got, want, target):
    """Bit for bit, but for NaNs."""
    got = words(got, 4 if target == F32 else 2)
    return len(got) == len(want) and all(
        one == other if other is not None else is_nan(one, target) for one, other in zip(got, want))


def random_bytes(count):
    return RANDOM.getrandbits(8 * count).to_bytes(count, "little") if count else b""


def all_values(dtype):
    """Each bit pattern of 8 and 16 bits; of 32 many, with those around which rounding is hard."""
    bits = BITS[dtype]
    if bits <= 16:
        return b"".join(value.to_bytes(bits // 8, "little") for value in range(1 << bits))
    many = [RANDOM.getrandbits(32) for _ in range(30000)]
    for half in range(0, 0x8000, 7):  # around each float16, and half way between it and the next
        word = f16_as_f32(half)
        many += [word + delta & 0xffffffff for delta in (0, 1, 0xfff, 0x1000, 0x1001)]
    many += [word << 16 | low for word in range(0x3f80, 0x3f90) for low in (0, 1, 0x7fff, 0x8000, 0x8001, 0xffff)]
    many += [1, 0x7fffff, 0x800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x477fefff, 0x477ff000, 0x33000000, 0x33000001]
    many += [word ^ 0x80000000 for word in many]
    return struct.pack("<%dI" % len(many), *many)


def quantized(encoding, elements):
    blocks = (elements + 31) // 32
    scales = [RANDOM.uniform(1e-3, 2) for _ in range(blocks)]
    for i, odd in enumerate([0.0, -1.5, 1e-45, 3e-39, 3.4e38, float("inf"), float("nan"), 1e-38]):
        if i + 1 < blocks:
            scales[i + 1] = odd
    return random_bytes(blocks * {Q4: 16, Q8: 32}[encoding]) + struct.pack("<%df" % blocks, *scales)


def check_tensor(helper, dtype, encoding, elements, data, target, share, piece=None):
    what = "%s encoding %d, %d elements, target %d, share %d" % (dtype, encoding, elements, target, share)
    converts = encoding != DENSE or (dtype in FLOATS and target != STORED)
    result = F32 if target == STORED else target
    size, _, there = helper.begin(7, dtype, elements, len(data), encoding, target, share)
    helper.fill(7, data, piece)
    ready = helper.end(7)
    check(ready["bytes"] == size and ready["offset"] % 256 == 0, what, ready)
    got = peek(ready)
    if not converts or (encoding == DENSE and dtype == ("", "F32", "F16", "BF16")[target]):
        check(there == dtype and got == data, what)
    else:
        check(there == ("F32", "F16", "BF16")[result - 1], what, there)
        check(same(got, expected(dtype, encoding, data, elements, result), result), what)
    check(helper.release(7) >= 0, what)


def check_dense(helper, converts):
    for dtype in DTYPES:
        many = 3 * HALF * 8 // BITS[dtype] // 8 * 8 + 8  # two whole fills and a bit
        for elements in (0, 8, many):
            data = random_bytes(elements * BITS[dtype] // 8)
            for target in (STORED, F32) if converts or dtype not in FLOATS else (STORED,):
                check_tensor(helper, dtype, DENSE, elements, data, target, IPC)
    for dtype in FLOATS if converts else []:
        data = all_values(dtype)
        for target in (F32, F16, BF16):
            for share in (IPC, FD):
                check_tensor(helper, dtype, DENSE, len(data) * 8 // BITS[dtype], data, target, share, piece=HALF // 2)


def check_quantized(helper):
    for encoding in (Q4, Q8):
        for elements in (1, 31, 32, 33, 1000, 100001):
            data = quantized(encoding, elements)
            for target in (STORED, F32, F16, BF16):
                check_tensor(helper, "F32", encoding, elements, data, target, (IPC, FD)[elements % 2], piece=HALF)


def check_golden(helper):
    """The tensors of the golden quantized models: what their .npy views hold."""
    for name in ("small_q4.oam", "small_q8.oam", "small_dense.oam"):
        path = os.path.join(os.environ.get("srcdir", "."), "tests", "golden", "oam", "quantized", name)
        tree, _ = expected_tree.tree_of(path)
        for number, row in enumerate(tree["tensors.json"]["tensors"].values()):
            raw, view = tree[row["raw"]], tree[row["npy"]]
            encoding = {"dense": DENSE, "q4": Q4, "q8": Q8}[row["encoding"]]
            ready = helper.load(100 + number, row["dtype"], row["elements"], raw, encoding)
            check(peek(ready) == view[len(view) - ready["bytes"]:], name, row["npy"])
            helper.release(100 + number)


def check_store(helper):
    """Memory that is made is zero; it is written and read at any place; a tensor that was loaded can be, too."""
    for share in (IPC, FD):
        made = {tensor: bytearray(size) for tensor, size in ((1, 1), (2, 5000), (3, (2 << 20) + 13))}
        ready = {tensor: helper.make(tensor, len(data), share) for tensor, data in made.items()}
        for tensor, data in made.items():
            check(peek(ready[tensor], keep=True) == data, "made memory is not zero", tensor)
            for _ in range(6):
                off = RANDOM.randrange(len(data))
                piece = random_bytes(min(len(data) - off, RANDOM.randrange(1, HALF + 1)))
                data[off:off + len(piece)] = piece
                half = RANDOM.randrange(2)
                helper.write(tensor, off, piece, half)
                check(helper.read(tensor, off, len(piece), 1 - half) == piece, "read", tensor, off, len(piece))
            check(peek(ready[tensor]) == data, "written memory", tensor)
        helper.load(4, "U8", 5, b"hello")
        helper.write(4, 1, b"a")
        check(helper.read(4, 0, 5) == b"hallo", "a tensor that was loaded")
        for tensor in (1, 2, 3, 4):
            helper.release(tensor)


def main():
    if not os.access(talk.HELPER, os.X_OK):
        print("no ckptfs-gpu: skipped")
        return 77
    with Helper() as helper:
        facts = helper.hello()
        converts = bool(facts["converts"])
        if not converts:
            print("no kernels (%s): only what is not converted is tested" % facts["lack"])
        check(facts["pinned"] == 1 and facts["total"] >= facts["free"] > 0, facts)
        check_store(helper)
        check_dense(helper, converts)
        if converts:
            check_quantized(helper)
            check_golden(helper)
        check(helper.info()[2] == 0, "something is left on the device")
        check(helper.close() == 0, "exit code")
    print("%d checks, %d faults" % (checks, faults))
    return 1 if faults or checks < 150 else 0


if __name__ == "__main__":
    sys.exit(main())
