#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `ckpt pack` makes mounts as expected_tree.py says, and packing that mount gives the file back. So does packing a
mount of a quantized copy and of an envelope. A damaged mount is refused with the error of the mount."""
import contextlib
import io
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import expected_tree

CKPT = os.path.join(os.path.dirname(lib.CKPTFS), "ckpt")
OUT = lib.path("out.oam")


def ckpt(*words):
    """(exit code, stderr)"""
    done = subprocess.run([CKPT, *words], capture_output=True, text=True, errors="replace", check=False, timeout=60)
    return done.returncode, done.stderr.strip()


def check(source, want):
    """The mount of source is what it should be, and packs to the bytes of the file `want`."""
    report = io.StringIO()
    with lib.mounted(source):
        with contextlib.redirect_stdout(report):
            expected_tree.check(source, lib.MOUNT)
        code, message = ckpt("pack", lib.MOUNT, OUT)
    lines = report.getvalue().strip().splitlines()
    lib.want(lines[-1].endswith(" 0 faults"), "%s: %s", source, "\n  ".join(lines[:5] + lines[-1:]))
    lib.want(code == 0 and lib.read(OUT) == lib.read(want), "%s: its mount packs to something else: %s", source, message)


def refused(source):
    """One byte of the last tensor's is wrong."""
    with open(source, "r+b") as stream:
        rows = expected_tree.oam_tree(stream.read())[2]["sections"]
        at = [row["offset"] + row["size"] - 1 for row in rows if row["kind"] == "weights"][0]
        stream.seek(at)
        byte = stream.read(1)[0]
        stream.seek(at)
        stream.write(bytes([byte ^ 1]))
    with open(OUT, "wb") as stream:
        stream.write(b"old")
    with lib.mounted(source):
        code, message = ckpt("pack", lib.MOUNT, OUT)
    lib.want(code == 2 and "Input/output error" in message and "tok.weight" in message,
             "a damaged mount: exit %d: %s", code, message)
    lib.want(lib.read(OUT) == b"old", "a damaged mount: the target changed")


cases = os.path.join(lib.GOLDEN, "oam", "write")
names = sorted(os.listdir(cases))
for name in names:
    packed = lib.path(name + ".oam")
    code, message = ckpt("pack", os.path.join(cases, name, "spec.json"), packed)
    lib.want(code == 0, "%s: %s", name, message)
    check(packed, packed)
lib.want(len(names) >= 7, "only %d cases", len(names))

for kind in ("q4", "q8"):
    quantized = lib.path(kind + ".oam")
    code, message = ckpt("quantize", kind, os.path.join(lib.GOLDEN, "oam/quantized/small_dense.oam"), quantized)
    lib.want(code == 0, "quantize %s: %s", kind, message)
    check(quantized, quantized)

sealed = lib.path("sealed.ckpt")
inner = lib.path("transformer_adamw.oam")
code, message = ckpt("seal", "--schema", "a", "--learner", "b", "--data", "c", "--seed", "d", "--chunk", "4K", "--updates",
                     "1", "--invocations", "1", inner, sealed)
lib.want(code == 0, "seal: %s", message)
check(sealed, inner)
refused(inner)
lib.finish()
