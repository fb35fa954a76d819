#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verdict of `ckpt verify` on every case of tests/golden/manifest.json: first line and exit code, exactly."""
import json
import os
import re
import sys

from cli import GOLDEN, Faults, ckpt


def kebab(name):
    return re.sub(r"(?<=.)(?=[A-Z])", "-", name).lower()


def expected(case, contract):
    """(first line, exit code); the line None: "corrupt: " and some message."""
    if case["format"] == "envelope":
        if case["valid"]:
            stray = os.path.basename(case["file"]) == "padding_not_zero.ckpt" and not contract
            return ("layout", 3) if stray else ("accepted", 0)
        return kebab(case["error"]) + (" %d" % case["chunk"] if "chunk" in case else ""), 3
    if case["valid"]:
        return "ok", 0
    return ("corrupt: " + case["error"], 3) if case["format"] == "oam" else (None, 3)


def judge(faults, case, contract):
    path = os.path.join(GOLDEN, case["file"])
    options = ["--contract", os.path.join(GOLDEN, case["contract"])] if contract else []
    code, out, err = ckpt("verify", *options, path)
    line, want = expected(case, contract)
    first = out.split(b"\n", 1)[0].decode("utf-8", "backslashreplace")
    good = first == line if line else re.fullmatch("corrupt: .+", first)
    faults.check(good, "%s: '%s', want '%s'" % (case["file"], first, line or "corrupt: ..."))
    faults.check(code == want, "%s: exit %d, want %d: %s" % (case["file"], code, want, err))
    told = err.startswith("ckpt: " + path + ": ") and err.count("\n") == 1
    faults.check(told if code else err == "", "%s: stderr is '%s'" % (case["file"], err))


def main():
    faults = Faults()
    with open(os.path.join(GOLDEN, "manifest.json"), encoding="utf-8") as stream:
        cases = json.load(stream)
    for case in cases:
        judge(faults, case, "contract" in case)
        if case["format"] == "envelope" and case["valid"]:
            judge(faults, case, False)
    return faults.finish(3 * 560)


if __name__ == "__main__":
    sys.exit(main())
