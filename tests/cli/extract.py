#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt extract`: every checkpoint that mounts as plain files, parts of it, damage, and all or nothing."""
import contextlib
import io
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile

from cli import CKPT, GOLDEN, Faults, ckpt

import expected_tree

MODEL = os.path.join(GOLDEN, "oam/valid/transformer_adamw.oam")
# compared with `ckpt cat` byte for byte, JSON too
CAT = ["oam/valid/minimal_named.oam", "envelope/accepted/whole_chunks_and_tail.ckpt",
       "safetensors/valid/all_dtypes.safetensors", "safetensors/sharded/good/model.safetensors.index.json"]


def paths_below(folder):
    found = set()
    for place, folders, files in os.walk(folder):
        inside = os.path.relpath(place, folder)
        found |= {os.path.normpath(os.path.join(inside, name)) for name in files}
        found |= {os.path.normpath(os.path.join(inside, name)) + "/" for name in folders}
    return found


def content(path):
    with open(path, "rb") as stream:
        return stream.read()


def tensors_file(path, tensors, holes=False):
    """A safetensors file of {name: (dtype, shape, bytes or, with holes, a length)}."""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        size = data if holes else len(data)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        if holes:
            stream.truncate(8 + len(text) + at)
        else:
            stream.write(b"".join(data for _, _, data in tensors.values()))


# ---- all that mounts


def check_times(faults, name, source, target):
    want = os.stat(source).st_mtime_ns
    if name.endswith(".index.json"):  # the latest of its parts
        folder = os.path.dirname(source)
        shards = set(json.loads(content(source))["weight_map"].values())
        want = max(os.stat(os.path.join(folder, shard)).st_mtime_ns for shard in shards | {os.path.basename(source)})
    for path in sorted(paths_below(target)) + [""]:
        stat = os.stat(os.path.join(target, path))
        mode = 0o40755 if path.endswith("/") or not path else 0o100644
        faults.check(stat.st_mtime_ns == want and stat.st_mode == mode, "%s: %s: mode %o, time %d, want %d" % (
            name, path, stat.st_mode, stat.st_mtime_ns, want))


def check_whole(faults, name, work):
    source, target = os.path.join(GOLDEN, name), os.path.join(work, "whole")
    code, out, err = ckpt("extract", source, target)
    faults.check(code == 0 and out == b"" and err == "", "%s: exit %d: %s" % (name, code, err))
    if code:
        return
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        expected_tree.check(source, target)
    faults.check(said.getvalue().endswith(" 0 faults\n"), "%s: %s" % (name, said.getvalue()))
    listed = set(ckpt("ls", source)[1].decode("utf-8").splitlines())
    faults.check(paths_below(target) == listed, "%s: other paths than ls: %s" % (
        name, sorted(paths_below(target) ^ listed)))
    if name in CAT:
        for path in sorted(p for p in listed if not p.endswith("/") and p != "verify.json"):
            faults.check(ckpt("cat", source, path)[1] == content(os.path.join(target, path)),
                         "%s: %s: not what cat writes" % (name, path))
    check_times(faults, name, source, target)
    json.loads(content(os.path.join(target, "verify.json")))
    subprocess.run(["rm", "-rf", target], check=True)
    faults.check(os.listdir(work) == [], "%s: something is left: %s" % (name, os.listdir(work)))


def check_all(faults, work):
    with open(os.path.join(GOLDEN, "manifest.json"), encoding="utf-8") as stream:
        cases = json.load(stream)
    for case in cases:
        if case["valid"]:
            check_whole(faults, case["file"], work)


# ---- parts


def check_parts(faults, work):
    tree = {p for p in ckpt("ls", MODEL)[1].decode("utf-8").splitlines() if not p.endswith("/")}

    def part(*globs):
        target = os.path.join(work, "part")
        code, _, err = ckpt("extract", MODEL, target, *globs)
        faults.check(code == 0 and err == "", "extract %s: exit %d: %s" % (globs, code, err))
        got = {p for p in paths_below(target) if not p.endswith("/")}
        subprocess.run(["rm", "-rf", target], check=True)
        return got

    def below(*folders):
        return {p for p in tree if p.startswith(folders)}
    faults.check(part("tensors") == below("tensors/"), "extract tensors")
    faults.check(part("/tensors/", "config.json") == below("tensors/") | {"config.json"}, "extract /tensors/")
    faults.check(part("*.npy") == {p for p in tree if p.endswith(".npy")}, "extract '*.npy'")
    faults.check(part("tensors/*", "tensors") == below("tensors/"), "extract twice the same")
    faults.check(part("raw/st*") == below("raw/state/"), "extract 'raw/st*'")
    faults.check(part("verify.json") == {"verify.json"}, "extract verify.json")
    faults.check(part("/") == tree and part() == tree, "extract /")
    for globs in (["none*"], ["tensors", "none*"], ["config.json/x"], ["tensor"]):
        code, _, err = ckpt("extract", MODEL, os.path.join(work, "part"), *globs)
        faults.check(code == 1 and "no path matches '%s'" % globs[-1] in err, "extract %s: %d %s" % (globs, code, err))
    faults.check(os.listdir(work) == [], "parts: something is left: %s" % os.listdir(work))
    odd = os.path.join(work, "odd.safetensors")
    tensors_file(odd, {"a[0]": ("U8", [1], b"x"), "a0": ("U8", [1], b"y"), "ä\n": ("U8", [0], b"")})
    target = os.path.join(work, "part")
    faults.check(ckpt("extract", odd, target, "tensors/a[0].npy")[0] == 0 and
                 paths_below(target) == {"tensors/", "tensors/a[0].npy"}, "a path is no pattern")
    faults.check(ckpt("extract", odd, target + "2", "raw")[0] == 0 and
                 paths_below(target + "2") == {
                     "raw/", "raw/tensors/", "raw/tensors/a[0].bin", "raw/tensors/a0.bin",
                     "raw/tensors/ä%0A.bin"}, "odd names: %s" % paths_below(target + "2"))
    subprocess.run(["rm", "-rf", odd, target, target + "2"], check=True)


# ---- where it goes


def check_targets(faults, work):
    target = os.path.join(work, "deep", "er")
    code, _, err = ckpt("extract", MODEL, target + "//", "config.json")
    faults.check(code == 0 and os.listdir(target) == ["config.json"], "missing parents: %d %s" % (code, err))
    code, _, err = ckpt("extract", MODEL, target, "config.json")
    faults.check(code == 2 and "empty directory" in err, "a full directory: %d %s" % (code, err))
    code, _, err = ckpt("extract", MODEL, os.path.join(target, "config.json"))
    faults.check(code == 2 and "no directory" in err, "a file: %d %s" % (code, err))
    empty = os.path.join(work, "empty")
    os.mkdir(empty, 0o750)
    link = os.path.join(work, "link")
    os.symlink("empty", link)
    code, _, err = ckpt("extract", MODEL, link, "tensors")
    faults.check(code == 0 and os.listdir(empty) == ["tensors"] and os.path.islink(link) and
                 os.stat(empty).st_mode == 0o40750, "an empty directory through a link: %d %s" % (code, err))
    for bad in (".", "..", empty + "/."):
        code, _, err = ckpt("extract", MODEL, bad)
        faults.check(code == 1 and "cannot be replaced" in err, "%s: %d %s" % (bad, code, err))
    code, _, err = ckpt("extract", MODEL, "")
    faults.check(code == 1, "no name: %d %s" % (code, err))
    faults.check(sorted(os.listdir(work)) == ["deep", "empty", "link"], "something is left: %s" % os.listdir(work))
    subprocess.run(["rm", "-rf", os.path.join(work, "deep"), empty, link], check=True)


def small_files_only():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def check_full_disk(faults, work):
    done = subprocess.run([CKPT, "extract", MODEL, os.path.join(work, "full")], preexec_fn=small_files_only,
                          capture_output=True, check=False)
    faults.check(done.returncode == 2 and b"File too large" in done.stderr and not os.listdir(work),
                 "no room: exit %d, %s, left %s" % (done.returncode, done.stderr, os.listdir(work)))


# ---- damage


def check_damage(faults, work):
    data = bytearray(content(MODEL))
    sections = {row["kind"]: row for row in expected_tree.oam_tree(bytes(data))[2]["sections"]}
    data[sections["optimizer"]["offset"] + sections["optimizer"]["size"] - 1] ^= 0x10
    bad, target = os.path.join(work, "bad.oam"), os.path.join(work, "target")
    with open(bad, "wb") as stream:
        stream.write(data)
    code, out, err = ckpt("extract", bad, target)
    faults.check(code == 3 and out == b"" and "optimizer/" in err and "checksum mismatch" in err and
                 os.listdir(work) == ["bad.oam"], "damaged: exit %d: %s %s" % (code, err, os.listdir(work)))
    code, _, err = ckpt("extract", bad, target, "tensors", "config.json")
    faults.check(code == 0 and len(os.listdir(target)) == 2, "the rest of it: exit %d: %s" % (code, err))
    subprocess.run(["rm", "-rf", target], check=True)
    code, _, err = ckpt("extract", "--keep-going", bad, target)
    tree = {p for p in ckpt("ls", MODEL)[1].decode("utf-8").splitlines() if not p.endswith("/")}
    got = {p for p in paths_below(target) if not p.endswith("/")}
    hit = {p for p in tree if "optimizer" in p}
    faults.check(code == 3 and got == tree - hit, "kept going: exit %d: %s" % (code, sorted(got ^ (tree - hit))))
    told = [line for line in err.splitlines() if ": left out: " in line]
    faults.check(len(told) == len(hit) and all(any(": left out: %s: " % p in line for line in told) for p in hit) and
                 "%d files left out" % len(hit) in err, "what was left out: %s" % err)
    verify = json.loads(content(os.path.join(target, "verify.json")))
    faults.check("corrupt" in json.dumps(verify), "verify.json comes last: %s" % verify)
    subprocess.run(["rm", "-rf", bad, target], check=True)


# ---- and back

# What no writer makes: pack gives such files another form with the same content.
FORMS = {"version-1", "version-2", "legacy-kernel-cache", "section-order", "gaps", "ignored-fields", "tensor-table",
         "mutated"}


def check_back(faults, work):
    """What was extracted packs into the file that it came from, or into one that differs in nothing that counts."""
    with open(os.path.join(GOLDEN, "manifest.json"), encoding="utf-8") as stream:
        cases = json.load(stream)
    tree, packed = os.path.join(work, "tree"), os.path.join(work, "packed.oam")
    exact = 0
    for case in cases:
        source = os.path.join(GOLDEN, case["file"])
        if case["format"] != "oam" or not case["valid"]:
            continue
        ckpt("extract", source, tree)
        code, _, err = ckpt("pack", tree, packed)
        faults.check(code == 0, "%s: pack: exit %d: %s" % (case["file"], code, err))
        if case["class"] in FORMS:
            faults.check(ckpt("diff", source, packed) == (0, b"", ""), "%s: the packed one differs" % case["file"])
        else:
            exact += 1
            faults.check(content(source) == content(packed), "%s: not packed into the same bytes" % case["file"])
        subprocess.run(["rm", "-rf", tree, packed], check=True)
    faults.check(exact >= 70, "only %d files came back" % exact)


# ---- signals


def stop(faults, work, number):
    """Signals the run as soon as its temporary directory is there; returns (exit code, what is left)."""
    source = os.path.join(work, "huge.safetensors")
    tensors_file(source, {"w": ("F32", [1 << 29], 1 << 31)}, holes=True)
    with subprocess.Popen([CKPT, "extract", source, os.path.join(work, "target")],
                          stderr=subprocess.DEVNULL) as process:
        while not any(name.startswith(".target.ckpt-tmp-") for name in os.listdir(work)):
            if process.poll() is not None:
                faults.check(False, "it ended before its directory was seen: %s" % process.returncode)
                break
        process.send_signal(number)
        process.wait()
    os.remove(source)
    return process.returncode, os.listdir(work)


def check_signals(faults, work):
    code, left = stop(faults, work, signal.SIGINT)
    faults.check(code == 130 and left == [], "SIGINT: exit %d, left %s" % (code, left))
    code, left = stop(faults, work, signal.SIGKILL)
    faults.check(code == -9 and len(left) == 1, "SIGKILL: exit %d, left %s" % (code, left))
    code, _, err = ckpt("extract", MODEL, os.path.join(work, "target"), "config.json")
    faults.check(code == 0 and os.listdir(work) == ["target"], "the next run cleans: %d %s %s" % (
        code, err, os.listdir(work)))
    subprocess.run(["rm", "-rf", os.path.join(work, "target")], check=True)


def check_many(faults, work):
    source, target = os.path.join(work, "many.safetensors"), os.path.join(work, "many")
    tensors_file(source, {"layer.%d" % i: ("U16", [2], struct.pack("<HH", i % 65536, 7)) for i in range(20000)})
    code, _, err = ckpt("extract", source, target, "raw/tensors")
    faults.check(code == 0 and len(os.listdir(target + "/raw/tensors")) == 20000, "many: %d %s" % (code, err))
    faults.check(content(target + "/raw/tensors/layer.777.bin") == struct.pack("<HH", 777, 7), "layer.777")
    subprocess.run(["rm", "-rf", source, target], check=True)


def main():
    faults = Faults()
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as work:
        for check in (check_all, check_parts, check_targets, check_full_disk, check_damage, check_back,
                      check_signals, check_many):
            check(faults, work)
    return faults.finish(400)


if __name__ == "__main__":
    sys.exit(main())
