#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every conversion on the device beside the same arithmetic on the CPU (tests/gpu/convert): equal bits, NaNs and their
payloads included. Each bit pattern of the small types; of float32 and of quantized blocks many, the hard ones among
them. With CKPTFS_TEST_GPU=real it is the kernels that are judged, else only how they are called."""
import os
import random
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import talk
from talk import BF16, BITS, DENSE, F16, F32, FD, IPC, Q4, Q8, STORED, Helper, peek

CONVERT = os.path.join(talk.BUILDDIR, "tests", "gpu", "convert")
RANDOM = random.Random(11)
SMALL = ["F16", "BF16", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E5M2FNUZ", "F8_E4M3FNUZ"]
HALF = 1 << 20
# Zeros, subnormals, the largest, infinities, NaNs of both kinds; around the bounds of float16 and bfloat16.
HARD = [0, 1, 0x7fffff, 0x800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fffffff, 0x33000000,
        0x33000001, 0x387fffff, 0x38800000, 0x477fefff, 0x477ff000, 0x7f7f7fff, 0x7f7f8000]
checks = faults = 0


def check(holds, *words):
    global checks, faults
    checks += 1
    if not holds:
        faults += 1
        print("fault:", *words)


def converted(kernel, target, elements, data):
    words = [CONVERT, kernel, str(target), str(elements)]
    return subprocess.run(words, input=data, capture_output=True, check=True, timeout=talk.DEADLINE).stdout


def first_difference(got, want):
    at = next((i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1]), min(len(got), len(want)))
    return "%d and %d bytes, from byte %d on: %s, not %s" % (len(got), len(want), at, got[at & ~3:][:4].hex(),
                                                            want[at & ~3:][:4].hex())


def compare(helper, dtype, encoding, elements, data, target, share):
    kernel = {DENSE: "ckpt_" + dtype.lower(), Q4: "ckpt_q4", Q8: "ckpt_q8"}[encoding]
    ready = helper.load(1, dtype, elements, data, encoding, target, share)
    got = peek(ready)
    helper.release(1)
    to = {STORED: 0, F32: 0, F16: 1, BF16: 2}[target]
    stays = encoding == DENSE and dtype == ("F32", "F16", "BF16")[to]
    want = data if stays else converted(kernel, to, elements, data)
    check(got == want, dtype, "encoding", encoding, "target", target, first_difference(got, want))


def all_patterns(dtype):
    size = BITS[dtype] // 8
    return b"".join(value.to_bytes(size, "little") for value in range(1 << BITS[dtype]))


def many_floats():
    words = [RANDOM.getrandbits(32) for _ in range(1 << 19)]
    words += [high << 16 | low for high in range(1 << 16) for low in (0x7fff, 0x8000, 0x8001)]
    words += HARD + [word | 0x80000000 for word in HARD]
    return struct.pack("<%dI" % len(words), *words)


def quantized(encoding, elements):
    blocks = (elements + 31) // 32
    scales = [RANDOM.choice(HARD) | RANDOM.getrandbits(1) << 31 if i % 3 else RANDOM.getrandbits(32)
              for i in range(blocks)]
    integers = RANDOM.getrandbits(8 * blocks * (16 if encoding == Q4 else 32))
    return integers.to_bytes(blocks * (16 if encoding == Q4 else 32), "little") + struct.pack("<%dI" % blocks, *scales)


def main():
    if not os.access(talk.HELPER, os.X_OK) or not os.access(CONVERT, os.X_OK):
        print("no ckptfs-gpu: skipped")
        return 77
    with Helper(half=HALF) as helper:
        facts = helper.hello()
        if not facts["converts"]:
            print("no kernels: %s" % facts["lack"])
            return 1 if talk.REAL else 77
        floats = many_floats()
        for target in (F32, F16, BF16):
            for dtype in SMALL:
                compare(helper, dtype, DENSE, 1 << BITS[dtype], all_patterns(dtype), target, IPC)
            compare(helper, "F32", DENSE, len(floats) // 4, floats, target, FD)
            for encoding in (Q4, Q8):
                for elements in (1, 31, 33, 300007):
                    compare(helper, "F32", encoding, elements, quantized(encoding, elements), target, IPC)
        compare(helper, "F32", Q4, 100000, quantized(Q4, 100000), STORED, IPC)
    print("%d checks, %d faults" % (checks, faults))
    return 1 if faults or checks < 45 else 0


if __name__ == "__main__":
    sys.exit(main())
