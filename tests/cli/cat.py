#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt cat` and `ckpt ls` against the independent reader of tests/expected_tree.py, on good and damaged files."""
import json
import os
import sys
import tempfile

from cli import GOLDEN, Faults, ckpt

import expected_tree

FILES = [
    "oam/valid/transformer_adamw.oam", "oam/valid/minimal_named.oam", "envelope/accepted/holds_oam.ckpt",
    "envelope/accepted/holds_safetensors.ckpt", "envelope/accepted/whole_chunks_and_tail.ckpt",
    "safetensors/valid/simple.safetensors", "safetensors/valid/all_dtypes.safetensors",
    "safetensors/valid/new_dtypes.safetensors", "safetensors/sharded/good/model.safetensors.index.json",
]
OAM_DAMAGED = "oam/valid/transformer_adamw.oam"


def same(path, got, want):
    if not isinstance(want, bytes):
        return json.loads(got.decode("utf-8")) == want
    converted = path.endswith((".npy", ".safetensors"))
    return got == want or (converted and expected_tree.same_but_nans(got, want))


def all_folders(tree, folders):
    """Every directory: those of the paths, and those that are there though empty."""
    found = set(folders)
    for path in list(tree) + list(folders):
        while "/" in path:
            path = path.rsplit("/", 1)[0]
            found.add(path)
    return found


def check_listing(faults, name, source, tree, folders):
    code, out, err = ckpt("ls", source)
    lines = out.decode("utf-8").splitlines()
    want = set(tree) | {folder + "/" for folder in folders} | {"verify.json"}
    faults.check(code == 0 and err == "", "%s: ls: exit %d, %s" % (name, code, err))
    faults.check(set(lines) == want, "%s: ls differs: %s" % (name, sorted(set(lines) ^ want)))
    faults.check(len(lines) == len(set(lines)), "%s: ls repeats itself" % name)
    if code:
        return {}
    rows = json.loads(ckpt("ls", "--json", source)[1])
    faults.check([row["path"] + ("/" if row["kind"] == "dir" else "") for row in rows] == lines,
                 "%s: ls --json lists other paths" % name)
    sizes = {row["path"]: row["size"] for row in rows if row["kind"] == "file"}
    long_lines = ckpt("ls", "-l", source)[1].decode("utf-8").splitlines()
    for line in long_lines:
        mode, size, _, _, path = line.split(None, 4)
        faults.check(mode == ("dr-xr-xr-x" if path.endswith("/") else "-r--r--r--"), "%s: %s" % (name, line))
        faults.check(path.endswith("/") or int(size) == sizes[path], "%s: %s" % (name, line))
    faults.check(len(long_lines) == len(lines), "%s: ls -l has other lines" % name)
    return sizes


def check_file(faults, name):
    source = os.path.join(GOLDEN, name)
    tree, folders = expected_tree.tree_of(source)
    sizes = check_listing(faults, name, source, tree, all_folders(tree, folders))
    for path, want in tree.items():
        code, got, err = ckpt("cat", source, path)
        faults.check(code == 0 and err == "" and same(path, got, want),
                     "%s: %s: exit %d, %d bytes, %s" % (name, path, code, len(got), err))
        faults.check(sizes.get(path) == len(got), "%s: %s: listed with %s bytes, has %d" % (
            name, path, sizes.get(path), len(got)))


def check_globs(faults):
    source = os.path.join(GOLDEN, OAM_DAMAGED)
    tree, _ = expected_tree.tree_of(source)

    def names(glob):
        return set(ckpt("ls", source, glob)[1].decode("utf-8").splitlines())
    faults.check(names("*.npy") == {p for p in tree if p.endswith(".npy")}, "ls '*.npy'")
    faults.check(names("tensors") == {p for p in tree if p.startswith("tensors/")}, "ls tensors")
    faults.check(names("/tensors/") == names("tensors"), "ls /tensors/")
    faults.check(names("config.json") == {"config.json"}, "ls config.json")
    faults.check(names("raw") == {p for p in tree if p.startswith("raw/")} | {
        "raw/%s/" % folder for folder in ("tensors", "state", "optimizer")
        if any(p.startswith("raw/%s/" % folder) for p in tree)}, "ls raw")
    code, out, err = ckpt("ls", source, "nothing*")
    faults.check(code == 1 and out == b"" and "nothing*" in err, "ls of no match: %d %s" % (code, err))


def check_damaged(faults, name, at, hit):
    """One flipped bit: whatever needs the unit fails with exit 3 and a true beginning; the rest is exact."""
    good = os.path.join(GOLDEN, name)
    with open(good, "rb") as stream:
        data = bytearray(stream.read())
    tree, _ = expected_tree.tree_of(good)
    data[at] ^= 0x10
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        bad = os.path.join(folder, "damaged")
        with open(bad, "wb") as stream:
            stream.write(data)
        for path, want in tree.items():
            code, got, err = ckpt("cat", bad, path)
            if hit(path):
                failed += 1
                begins = want[:len(got)] == got if isinstance(want, bytes) else got == b""
                faults.check(code == 3 and begins and err, "%s: %s is damaged: exit %d, %d bytes: %s" % (
                    name, path, code, len(got), err))
            elif isinstance(want, bytes) or path not in ("checkpoint.json", "tensors.json"):
                faults.check(code == 0 and same(path, got, want), "%s: %s is not damaged: exit %d: %s" % (
                    name, path, code, err))
    faults.check(failed > 0, "%s: nothing was hit" % name)


def check_damage(faults):
    with open(os.path.join(GOLDEN, OAM_DAMAGED), "rb") as stream:
        _, _, facts, _ = expected_tree.oam_tree(stream.read())
    sections = {row["kind"]: row for row in facts["sections"]}
    row = sections["optimizer"]
    check_damaged(faults, OAM_DAMAGED, row["offset"] + row["size"] - 1,
                  lambda path: "optimizer" in path)
    row = sections["weights"]
    check_damaged(faults, OAM_DAMAGED, row["offset"] + row["size"] - 1, lambda path: path.startswith(
        ("tensors/", "raw/tensors/", "export/model", "sections/weights")))
    name = "envelope/accepted/whole_chunks_and_tail.ckpt"
    check_damaged(faults, name, 4096 + 1000,
                  lambda path: path in ("envelope/chunks/00000001.bin", "envelope/payload.bin"))


def main():
    faults = Faults()
    for name in FILES:
        check_file(faults, name)
    check_globs(faults)
    check_damage(faults)
    return faults.finish(300)


if __name__ == "__main__":
    sys.exit(main())
