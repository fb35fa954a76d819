#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""damage.py [SEED [COUNT]]: one flipped bit in a unit makes the files of that unit, and no others, give EIO, and is
named in verify.json. No byte that differs from the undamaged file's ever leaves the mount."""
import errno
import json
import os
import random
import sys

sys.dont_write_bytecode = True
import lib
import expected_tree
import make
from places import Places, touch

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 20261201
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 100


def golden(name):
    with open(os.path.join(lib.GOLDEN, name), "rb") as stream:
        return stream.read()


def subjects():
    with open(os.path.join(lib.GOLDEN, "manifest.json")) as stream:
        cases = [case["file"] for case in json.load(stream) if case["valid"] and not case.get("ambiguous") and
                 case["format"] in ("oam", "envelope") and case["class"] != "many"]
    found = {name: golden(name) for name in cases}
    large = make.oam([("w%d" % i, make.pattern(300000 + 70000 * i, i)) for i in range(6)],
                     [("s", make.pattern(200000, 9))])
    found["large.oam"] = large
    found["large.ckpt"] = make.envelope(large, 100000)
    found["sealed.safetensors"] = make.envelope(make.safetensors(
        [("t%d" % i, make.pattern(50000, i)) for i in range(8)]), 30000)
    return found


def same(path, got, want):
    if isinstance(want, bytes):
        return got == want or (path.endswith((".npy", ".safetensors")) and expected_tree.same_but_nans(got, want))
    return json.loads(got.decode()) == want


def judge(name, path, got, want, must):
    """must: "exact", "fail", or "either"."""
    if isinstance(got, int):
        return lib.want(must != "exact" and got in (errno.EIO, errno.ENOENT), "%s: %s: errno %d, must be %s", name,
                        path, got, must)
    lib.want(must != "fail", "%s: %s: could be read", name, path)
    return lib.want(same(path, got, want), "%s: %s: other bytes", name, path)


def check_tree(name, places, tree, unit, at):
    """unit: the damaged one; at: the flipped byte."""
    for path, want in tree.items():
        if path in ("tensors.json", "checkpoint.json"):
            if not touch(places.parsed.get(path, []), *unit[1:]):
                judge(name, path, lib.read(os.path.join(lib.MOUNT, path)), want, "exact")
            continue
        parsed = touch(places.parsed[path], *unit[1:])
        content = touch(places.content[path], *unit[1:])
        must = "fail" if content else "either" if parsed else "exact"
        judge(name, path, lib.read(os.path.join(lib.MOUNT, path)), want, must)
    files, _ = expected_tree.walk(lib.MOUNT)
    for path in files.keys() - tree.keys():
        lib.want(lib.read(files[path]) in (errno.EIO, b""), "%s: %s: is not in the undamaged tree, and can be read", name, path)


def check_report(name, unit):
    report = json.loads(lib.read(os.path.join(lib.MOUNT, "verify.json")))
    rows = [(row["unit"], row["offset"], row["size"]) for row in report["faults"]]
    lib.want(rows == [tuple(unit)], "%s: verify.json lists %s, want %s", name, rows, unit)


def strike(dice, name, data, tree, places):
    unit = dice.choice([unit for unit in places.units if unit[2]])
    at = unit[1] + dice.randrange(unit[2])
    damaged = bytearray(data)
    damaged[at] ^= 1 << dice.randrange(8)
    name = "%s, %s, byte %d" % (name, unit[0], at)
    file = lib.path("damaged")
    with open(file, "wb") as stream:
        stream.write(damaged)
    code, message = lib.run(file, "verify=full")
    lib.want(code == 3 and not lib.is_mounted(), "%s: verify=full: exit code %d: %s", name, code, message)
    with lib.mounted(file):
        check_tree(name, places, tree, unit, at)
        check_report(name, unit)


print("seed %d" % SEED)
dice = random.Random(SEED)
all_subjects = subjects()
trees = {}
for count in range(COUNT):
    name = dice.choice(sorted(all_subjects)) if count % 3 else dice.choice(
        ["large.oam", "large.ckpt", "sealed.safetensors", "envelope/accepted/holds_oam.ckpt",
         "envelope/accepted/holds_safetensors.ckpt", "envelope/accepted/big.ckpt"])
    data = all_subjects[name]
    if name not in trees:
        trees[name] = expected_tree.expected_tree(data)[0], Places(data)
    if not any(unit[2] for unit in trees[name][1].units):
        continue
    try:
        strike(dice, name, data, *trees[name])
    except RuntimeError as error:
        lib.fault("%s", error)
lib.finish()
