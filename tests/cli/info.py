#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt info` of every good golden file: its JSON agrees with the independent reader, 64-bit integers included,
and what people read of it holds no control characters."""
import json
import os
import sys

from cli import GOLDEN, Faults, ckpt

import expected_tree

STORED = {"q4": "Q4", "q8": "Q8"}


def by_dtype(index):
    found = {}
    for row in index.values():
        name = STORED.get(row["encoding"], row["dtype"])
        total = found.setdefault(name, {"tensors": 0, "parameters": 0, "bytes": 0})
        total["tensors"] += 1
        total["parameters"] += row["elements"]
        total["bytes"] += row["bytes"]
    return found


def facts(path):
    """What the JSON must say, from the tree that the file must mount as."""
    tree, _ = expected_tree.tree_of(path)
    about = tree["checkpoint.json"]
    want = {"format": about["format"], "version": about["version"], "bytes": about["source_bytes"],
            "enveloped": about["enveloped"]}
    for key, name in (("config", "config.json"), ("progress", "progress.json"), ("metadata", "metadata.json"),
                      ("optimizer", "optimizer/optimizer.json"), ("envelope", "envelope/envelope.json")):
        want[key] = tree.get(name)
    for key in ("tensors", "state"):
        index = tree["tensors.json"][key]
        want[key] = {"count": len(index), "parameters": sum(row["elements"] for row in index.values()),
                     "bytes": sum(row["bytes"] for row in index.values()), "by_dtype": by_dtype(index)}
    return want


def check(faults, case):
    path = os.path.join(GOLDEN, case["file"])
    code, out, err = ckpt("info", "--json", path)
    faults.check(code == 0 and err == "", "%s: exit %d: %s" % (case["file"], code, err))
    if code:
        return
    try:
        got = json.loads(out.decode("utf-8"))
    except ValueError as error:
        faults.check(False, "%s: not JSON: %s" % (case["file"], error))
        return
    for key, value in facts(path).items():
        faults.check(got.get(key) == value, "%s: %s is %s, want %s" % (
            case["file"], key, json.dumps(got.get(key))[:300], json.dumps(value)[:300]))
    code, out, err = ckpt("info", path)
    text = out.decode("utf-8", "replace")
    faults.check(code == 0 and got["format"] in text and err == "", "%s: exit %d: %s" % (case["file"], code, err))
    control = [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160]
    faults.check(not control, "%s: control characters %s" % (case["file"], control))


def main():
    faults = Faults()
    with open(os.path.join(GOLDEN, "manifest.json"), encoding="utf-8") as stream:
        for case in json.load(stream):
            if case["valid"]:
                check(faults, case)
    return faults.finish(1000)


if __name__ == "__main__":
    sys.exit(main())
