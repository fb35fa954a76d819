#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt pack`: golden files byte by byte, a second writer, extracted trees, and what is refused. CKPT_SEED repeats a run."""
import copy
import json
import math
import os
import random
import shutil
import struct
import sys
import tempfile

from cli import GOLDEN, Faults, ckpt, without_room

import expected_tree
import oam_writer

faults = Faults()
OLD = b"what stood there before"
SPECS = 40


def read(path):
    with open(path, "rb") as stream:
        return stream.read()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


class Folder:
    """Where `out` is made whole or left as it was, and nothing appears besides."""

    def __init__(self, path):
        self.path, self.out = path, os.path.join(path, "target", "out.oam")
        self.spec = os.path.join(path, "spec", "spec.json")

    def fresh(self):
        shutil.rmtree(os.path.join(self.path, "target"), ignore_errors=True)
        write(self.out, OLD)

    def made(self, what, source, want):
        self.fresh()
        code, out, err = ckpt("pack", source, self.out)
        faults.check(code == 0 and not out and not err, "%s: exit %d: %s" % (what, code, err))
        faults.check(read(self.out) == want, "%s: other bytes" % what)
        self.clean(what)

    def refused(self, what, source, code, *words, out=None):
        self.fresh()
        got, _, err = ckpt("pack", source, out or self.out)
        faults.check(got == code, "%s: exit %d, want %d: %s" % (what, got, code, err))
        for word in words:
            faults.check(word in err, "%s: the message has no '%s': %s" % (what, word, err))
        faults.check(read(self.out) == OLD, "%s: the target changed" % what)
        self.clean(what)

    def clean(self, what):
        left = os.listdir(os.path.dirname(self.out))
        faults.check(left == ["out.oam"], "%s: there is more than the target: %s" % (what, left))


# ---- golden files ----------------------------------------------------------------------------------------------------

def check_golden(folder):
    names = sorted(os.listdir(os.path.join(GOLDEN, "oam/write")))
    for name in names:
        case = os.path.join(GOLDEN, "oam/write", name)
        folder.made(name, os.path.join(case, "spec.json"), read(os.path.join(case, "expected.oam")))
    faults.check(len(names) >= 7, "golden writing cases are missing")


def check_golden_refusals(folder):
    cases = json.loads(read(os.path.join(GOLDEN, "oam/write_refusals.json")))
    for case in cases:
        folder.refused(case["note"], write(folder.spec, case["spec"]), 1, case["error"])
    faults.check(len(cases) >= 26, "golden refusals are missing")


def check_trees(folder):
    """Extracting and packing gives back what a writer can have made, and else the same model as a writer makes it."""
    same = count = 0
    for case in json.loads(read(os.path.join(GOLDEN, "manifest.json"))):
        if case["format"] != "oam" or not case["valid"]:
            continue
        path, tree = os.path.join(GOLDEN, case["file"]), os.path.join(folder.path, "tree")
        shutil.rmtree(tree, ignore_errors=True)
        code, _, err = ckpt("extract", path, tree)
        faults.check(code == 0, "%s: extract: %s" % (case["file"], err))
        data = read(path)
        want = oam_writer.write(oam_writer.model_of(data))
        folder.made(case["file"], tree, want)
        same += want == data
        count += 1
    faults.check(count >= 30 and same >= 10, "only %d files, %d of them as a writer makes them" % (count, same))


# ---- random descriptions ---------------------------------------------------------------------------------------------

SPECIAL = [0x7F800001, 0xFFC00001, 0x7FC00000, 0x7F800000, 0xFF800000, 0x80000000, 0, 1, 0x3F800000, 0x7F7FFFFF]
SIZES = {"F32": 4, "BF16": 2, "F16": 2, "I8": 1, "I32": 4, "U8": 1, "F64": 8, "I16": 2, "I64": 8, "U16": 2, "U32": 4,
         "U64": 8, "BOOL": 1, "C64": 8, "C128": 16}


class Maker:
    """Random models: as oam_writer takes them, and as descriptions."""

    def __init__(self, chance, path):
        self.chance, self.path, self.files = chance, path, 0

    def text(self, most):
        letters = "abz.-_/ %\\\"'\n\x01\u00e9\u6a21\U0001f642"
        text = "".join(self.chance.choice(letters) for _ in range(self.chance.randint(1, 12)))
        while len(text.encode()) > most:
            text = text[:-1]
        return text or "x"

    def bits(self):
        return self.chance.choice(SPECIAL + [self.chance.randrange(1 << 32)] * 5)

    def tensor(self, number, state):
        chance, dtype = self.chance, self.chance.choice(list(SIZES))
        shape = [chance.choice([0, 1, 2, 3, 5, 33]) for _ in range(chance.choice([0, 1, 1, 2, 2, 3]))]
        elements = math.prod(shape)
        encoding, size, block = "dense", elements * SIZES[dtype], 0
        if not state and elements and chance.random() < 0.3:
            encoding, dtype, block = chance.choice(["q4", "q8"]), "F32", 32
            size = (elements + 31) // 32 * (20 if encoding == "q4" else 36)
        return {"name": "%d%s" % (number, self.text(100)), "dtype": dtype, "shape": shape, "encoding": encoding,
                "block_size": block, "data": chance.randbytes(size)}

    def optimizer(self):
        kind, count = self.chance.choice(["SGD", "Adam", "AdamW", "Muon"]), self.chance.randint(0, 9)
        return {"kind": kind, **{name: self.bits() for name in oam_writer.FLOATS},
                "step": self.chance.randint(-(1 << 63), (1 << 63) - 1), "first_moment": self.chance.randbytes(4 * count),
                "second_moment": b"" if kind == "Muon" else self.chance.randbytes(4 * count)}

    def model(self):
        chance = self.chance
        dtypes = {name: chance.choice(list(SIZES)) for name in ("weight_dtype", "state_dtype", "compute_dtype")}
        return {
            "config": {"architecture": self.text(31), **{n: chance.randrange(1 << 32) for n in oam_writer.CONFIG},
                       **dtypes, "arch_config": chance.choice([b"", b'{"a": 1}', chance.randbytes(5000)])},
            "weights": [self.tensor(i, False) for i in range(chance.randint(0, 5))],
            "state": [self.tensor(i, True) for i in range(chance.randint(0, 3))],
            "optimizer": self.optimizer() if chance.random() < 0.5 else None,
            "progress": {"phase": chance.randrange(256), "step": chance.randint(-(1 << 63), (1 << 63) - 1),
                         "bytes_seen": chance.randrange(1 << 64), "env_steps": chance.choice([0, (1 << 64) - 1]),
                         "learning_rate": self.bits(), "best_metric": self.bits(),
                         "lower_is_better": chance.random() < 0.5, "metric_name": self.text(31)}}

    def data(self, data):
        """A file beside the description, or hexadecimal digits in it."""
        if self.chance.random() < 0.5:
            return {"hex": data.hex()}
        self.files += 1
        name = self.chance.choice(["d%d.bin", "below/d%d"]) % self.files
        write(os.path.join(self.path, name), data)
        return name

    def floats(self, record, names):
        """Each as a value, as its bits, or as both; a NaN that is not the usual one needs its bits."""
        for name in names:
            bits = record.pop(name)
            value = struct.unpack("<f", struct.pack("<I", bits))[0]
            plain = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), value)
            how = self.chance.choice([1, 2, 3])
            if how & 1 or (value != value and bits != 0x7FC00000):
                record[name + "_bits"] = "%08x" % bits
            if how & 2 or name + "_bits" not in record:
                record[name] = plain
        return record

    def spec(self, model):
        model = copy.deepcopy(model)
        model["config"]["arch_config"] = self.data(model["config"]["arch_config"])
        for tensor in model["weights"] + model["state"]:
            tensor["data"] = self.data(tensor["data"])
        if model["optimizer"]:
            self.floats(model["optimizer"], oam_writer.FLOATS)
            for name in ("first_moment", "second_moment"):
                model["optimizer"][name] = self.data(model["optimizer"][name])
        self.floats(model["progress"], ["learning_rate", "best_metric"])
        return {"format": "oam", "version": 3, **model}


def check_random(folder, seed):
    maker = Maker(random.Random(seed), os.path.dirname(folder.spec))
    tree = os.path.join(folder.path, "tree")
    for number in range(SPECS):
        model = maker.model()
        want = oam_writer.write(model)
        folder.made("random %d" % number, write(folder.spec, maker.spec(model)), want)
        if number % 8 == 0:
            shutil.rmtree(tree, ignore_errors=True)
            faults.check(ckpt("extract", folder.out, tree)[0] == 0, "random %d: extract" % number)
            folder.made("random %d, extracted" % number, tree, want)


# ---- malformed descriptions ------------------------------------------------------------------------------------------

def good_spec():
    tensor = {"name": "w", "dtype": "F32", "shape": [2, 1], "encoding": "dense", "block_size": 0, "data": "w.bin"}
    return {"format": "oam", "version": 3,
            "config": {"architecture": "A", "config_version": 1, "flags": 0, "d_model": 0, "n_layers": 0, "d_vocab": 0,
                       "weight_dtype": "F32", "state_dtype": "F32", "compute_dtype": "F32", "arch_config": {"hex": "7b7d"}},
            "weights": [tensor], "state": [],
            "optimizer": {"kind": "Adam", **{name: 0.5 for name in oam_writer.FLOATS}, "step": 1,
                          "first_moment": {"hex": "00000000"}, "second_moment": {"hex": "00000001"}},
            "progress": {"phase": 0, "step": 0, "bytes_seen": 0, "env_steps": 0, "learning_rate": 1, "best_metric": "-inf",
                         "lower_is_better": True, "metric_name": "loss"}}


# (path of the member, its new value or None to remove it, words of the message)
WRONG = [
    (["format"], "safetensors", "format"), (["version"], 2, "version"), (["version"], "3", "version"),
    (["weights"], {}, "weights"), (["weights"], [1], "weights"), (["state"], None, None),
    (["config"], [], "config"), (["config", "flags"], -1, "flags"), (["config", "flags"], 1 << 32, "4294967295"),
    (["config", "flags"], 1.0, "flags"), (["config", "flags"], "1", "flags"), (["config", "flags"], True, "flags"),
    (["config", "weight_dtype"], "F31", "F31"), (["config", "weight_dtype"], "F8_E4M3", "F8_E4M3"),
    (["config", "architecture"], 5, "architecture"), (["config", "arch_config"], {"hex": "7"}, "arch_config"),
    (["config", "arch_config"], {"hex": "7g"}, "arch_config"), (["config", "arch_config"], {"text": "7g"}, "text"),
    (["config", "arch_config"], {}, "hex"), (["config", "extra"], 1, "extra"), (["extra"], 1, "unknown member 'extra'"),
    (["weights", 0, "dtype"], "F8_E4M3", "F8_E4M3"), (["weights", 0, "dtype"], None, "dtype"),
    (["weights", 0, "shape"], [2, -1], "shape"), (["weights", 0, "shape"], "2", "shape"),
    (["weights", 0, "shape"], [2.0], "shape"), (["weights", 0, "shape"], [1 << 64], "shape"),
    (["weights", 0, "shape"], [1] * 1000, "invalid name or rank"), (["weights", 0, "shape"], [3], "takes 12 bytes, not 8"),
    (["weights", 0, "encoding"], "q5", "q5"), (["weights", 0, "block_size"], 256, "block_size"),
    (["weights", 0, "name"], None, "name"), (["weights", 0, "name"], 1, "name"),
    (["weights", 0, "data"], None, "data"), (["weights", 0, "data"], 1, "data"), (["weights", 0, "data"], "", "no path"),
    (["weights", 0, "data"], "/etc/hostname", "no path"), (["weights", 0, "data"], "../spec/w.bin", "no path"),
    (["weights", 0, "data"], "below/../w.bin", "no path"), (["weights", 0, "data"], "w.bin\0", "no path"),
    (["weights", 0, "data"], "below", "is a directory"), (["weights", 0, "data"], "long.bin", "takes 8 bytes, not 9"),
    (["weights", 0, "data"], {"hex": "00"}, "takes 8 bytes, not 1"), (["weights", 0, "more"], 1, "unknown member 'more'"),
    (["optimizer"], [], "optimizer"), (["optimizer", "kind"], "adam", "unknown .oam optimizer type"),
    (["optimizer", "step"], 1 << 63, "step"), (["optimizer", "beta1"], 1e39, "beta1"),
    (["optimizer", "beta1"], "NAN", "beta1"), (["optimizer", "beta1"], None, "beta1"),
    (["optimizer", "beta1_bits"], "3f00000", "beta1_bits"), (["optimizer", "beta1_bits"], "3f000001", "3f000001"),
    (["optimizer", "beta1_bits"], 5, "beta1_bits"), (["optimizer", "first_moment"], None, "first_moment"),
    (["optimizer", "first_moment"], {"hex": "00"}, "moment lengths differ"),
    (["progress"], None, "progress"), (["progress", "phase"], 256, "phase"), (["progress", "step"], 0.5, "step"),
    (["progress", "bytes_seen"], 1 << 64, "bytes_seen"), (["progress", "lower_is_better"], 1, "lower_is_better"),
    (["progress", "metric_name"], "m" * 32, "31 non-NUL bytes"), (["progress", "metric_name"], None, "metric_name"),
]


def check_malformed(folder):
    shutil.rmtree(os.path.dirname(folder.spec), ignore_errors=True)
    write(os.path.join(os.path.dirname(folder.spec), "w.bin"), b"\0" * 8)
    write(os.path.join(os.path.dirname(folder.spec), "long.bin"), b"\0" * 9)
    write(os.path.join(os.path.dirname(folder.spec), "below", "x"), b"")
    folder.fresh()
    code, _, err = ckpt("pack", write(folder.spec, good_spec()), folder.out)
    faults.check(code == 0, "the good description: %s" % err)
    for path, value, word in WRONG:
        spec = good_spec()
        at = spec
        for step in path[:-1]:
            at = at[step]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value
        if word:
            folder.refused("%s = %r" % (path, value), write(folder.spec, spec), 1, word)
        else:
            folder.fresh()
            faults.check(ckpt("pack", write(folder.spec, spec), folder.out)[0] == 0, "%s is not needed" % path)
    text = json.dumps(good_spec())
    for what, bad in (("twice", text.replace('"flags": 0', '"flags": 0, "flags": 0')), ("cut", text[:-1]),
                      ("more", text + "{}"), ("empty", ""), ("list", "[]"), ("deep", "[" * 2000),
                      ("bits twice", text.replace('"beta1": 0.5', '"beta1_bits": "00000000", "beta1_bits": "00000000"')),
                      ("no UTF-8", text.replace('"A"', '"\\ud800"'))):
        folder.refused("a description: " + what, write(folder.spec, bad.encode()), 1, "spec.json")
    for what, data in (("a checkpoint", read(os.path.join(GOLDEN, "oam/quantized/small_q8.oam"))), ("NULs", bytes(100)),
                       ("an array", b" [{}]")):
        folder.refused(what, write(folder.spec, data), 1, "neither a directory nor a description")
    spec = good_spec()
    spec["weights"][0]["data"] = "missing.bin"
    folder.refused("no data", write(folder.spec, spec), 2, "missing.bin", "No such file")
    folder.refused("no description", folder.spec + ".none", 2, "No such file")


# ---- directories -----------------------------------------------------------------------------------------------------

class Tree:
    """An extracted tree that is changed."""

    def __init__(self, folder, golden="oam/write/transformer_adamw/expected.oam", *globs):
        self.folder, self.path = folder, os.path.join(folder.path, "tree")
        self.source = os.path.join(GOLDEN, golden)
        shutil.rmtree(self.path, ignore_errors=True)
        code, _, err = ckpt("extract", self.source, self.path, *globs)
        faults.check(code == 0, "extract: %s" % err)

    def at(self, name):
        return os.path.join(self.path, name)

    def edit(self, name, change):
        value = json.loads(read(self.at(name)))
        change(value)
        write(self.at(name), value)

    def refused(self, what, code, *words):
        self.folder.refused(what, self.path, code, *words)

    def made(self, what, change=lambda model: None):
        model = oam_writer.model_of(read(self.source))
        change(model)
        self.folder.made(what, self.path, oam_writer.write(model))


def npy(data, descr="<f4", shape=(24,)):
    """As numpy.save writes it."""
    return expected_tree.npy_header(descr, shape) + data


def check_edits(folder):
    """What someone changed in a tree is in the file that is packed."""
    tree = Tree(folder)
    tree.edit("config.json", lambda config: config.update(d_model=77))
    tree.edit("progress.json", lambda progress: progress.update(step=-(1 << 63), bytes_seen=(1 << 64) - 1))
    tree.edit("progress.json", lambda progress: progress.update(learning_rate=0.1, metric_name="acc"))
    tree.edit("tensors.json", lambda index: index["tensors"].pop(list(index["tensors"])[0]))
    shutil.rmtree(tree.at("optimizer"))

    def change(model):
        model["config"]["d_model"] = 77
        model["progress"].update(step=-(1 << 63), bytes_seen=(1 << 64) - 1, learning_rate=0x3DCCCCCD, metric_name="acc")
        model["weights"] = model["weights"][1:]
        model["optimizer"] = None
    tree.made("an edited tree", change)


def check_arrays(folder):
    """Without raw/, arrays stand for the stored bytes; where raw/ is there, it counts."""
    tree = Tree(folder, "oam/write/float_specials/expected.oam", "*.json", "tensors", "state", "optimizer")

    def usual_nans(model):
        for record in (model["progress"], model["optimizer"]):
            for name in oam_writer.FLOATS + ["best_metric"]:
                if name in record and record[name] & 0x7FFFFFFF > 0x7F800000:
                    record[name] = 0x7FC00000
    tree.made("arrays alone", usual_nans)
    values = struct.pack("<24f", *range(24))
    write(tree.at("tensors/sp.npy"), npy(values))

    def other_values(model):
        usual_nans(model)
        model["weights"][0]["data"] = values
    tree.made("an array of one's own", other_values)
    bad = {"dtype": npy(values * 2, "<f8"), "byte order": npy(values, ">f4"), "shape": npy(values, shape=(2, 12)),
           "length": npy(values[:-4], shape=(23,)), "kind": npy(values, "<i4"), "rank": npy(values, shape=())}
    for what, array in bad.items():
        write(tree.at("tensors/sp.npy"), array)
        tree.refused("an array of another " + what, 1, "tensors/sp.npy")
    good = npy(values)
    for what, data in (("cut", good[:-1]), ("more", good + b"\0"), ("head", good[:40]), ("empty", b""),
                       ("no array", b"x" * 200), ("version", good[:6] + b"\4" + good[7:]),
                       ("dictionary", good.replace(b"'descr'", b"'other'")),
                       ("shape", good.replace(b"(24,)", b"(2x,)")), ("twice", good.replace(b"'shape'", b"'descr'")),
                       ("huge", good[:8] + b"\xff\xff" + good[10:])):
        write(tree.at("tensors/sp.npy"), data)
        tree.refused("an array: " + what, 1, "tensors/sp.npy" if what not in ("cut", "more") else "byte count")
    os.unlink(tree.at("tensors/sp.npy"))
    tree.refused("neither raw/ nor an array", 2, "raw/tensors/sp.bin", "96 stored bytes")
    write(tree.at("raw/tensors/sp.bin"), values)
    tree.made("raw/ alone", other_values)
    for what, data in (("no array", b"x" * 200), ("another value", npy(values[:-1] + b"\0")), ("cut", npy(values)[:-1]),
                       ("another type", npy(values, "<i4")), ("another shape", npy(values, shape=(4, 6)))):
        write(tree.at("tensors/sp.npy"), data)
        tree.refused("raw/ and an array: " + what, 1, "tensors/sp.npy")
    write(tree.at("tensors/sp.npy"), npy(values))
    tree.made("raw/ and an array that agree", other_values)
    tree = Tree(folder, "oam/write/transformer_adamw/expected.oam")
    array = read(tree.at("tensors/tok.weight.npy"))
    os.unlink(tree.at("raw/tensors/tok.weight.bin"))
    for other in (array.replace(b"'fortran_order': False, 'shape'", b'"fortran_order": False ,"shape"'), array):
        write(tree.at("tensors/tok.weight.npy"), other)
        tree.made("another way to write the header")
    write(tree.at("tensors/tok.weight.npy"), array.replace(b"False,", b"True, "))
    tree.refused("Fortran order", 1, "Fortran")
    tree = Tree(folder, "oam/write/q4_q8_dense_mixed/expected.oam", "*.json", "tensors", "state", "optimizer")
    tree.refused("quantized values have no array", 2, "embed.weight", "q4")


def changed(data, chance):
    """One byte of an array's elements, and neither before nor after is it part of what may be a NaN."""
    while True:
        at = chance.randrange(128, len(data))
        other = data[:at] + bytes([data[at] ^ 0x21]) + data[at + 1:]
        word = 128 + (at - 128) // 4 * 4
        words = [struct.unpack("<f", array[word:word + 4].ljust(4, b"\0"))[0] for array in (data, other)]
        if not any(map(math.isnan, words)):
            return other


def check_twins(folder, seed):
    """An array that was changed is not passed over, whatever the stored bytes are."""
    chance = random.Random(seed)
    for golden in ("oam/write/dtypes_all/expected.oam", "oam/write/q4_q8_dense_mixed/expected.oam"):
        tree = Tree(folder, golden)
        index = json.loads(read(tree.at("tensors.json")))
        arrays = [row["npy"] for group in index.values() for row in group.values()]
        moments = [name for name in ("optimizer/first_moment.npy",) if os.path.exists(tree.at(name))]
        for name in arrays + moments:
            data = read(tree.at(name))
            write(tree.at(name), changed(data, chance))
            tree.refused("%s was changed" % name, 1, name, "delete the file that is not meant")
            write(tree.at(name), data)
        tree.made("all arrays as they were")


def check_broken_trees(folder):
    for name in ("config.json", "progress.json", "tensors.json", "raw/arch_config.bin", "raw/state/c.bin"):
        tree = Tree(folder)
        path = tree.at(name)
        if not os.path.exists(path):
            path = tree.at(os.path.join("raw/state", sorted(os.listdir(tree.at("raw/state")))[0]))
        os.unlink(path)
        shutil.rmtree(tree.at("state"))
        if name == "raw/arch_config.bin":  # the document has its text
            tree.made("without " + name)
        else:
            tree.refused("without " + name, 2, os.path.basename(path), "No such file")
    for name, less in (("raw/arch_config.bin", 1), ("raw/tensors/tok.weight.bin", 4), ("raw/optimizer/first_moment.bin", 4),
                       ("raw/optimizer/second_moment.bin", 4), ("raw/tensors/tok.weight.bin", -1)):
        tree = Tree(folder)
        size = os.path.getsize(tree.at(name))
        os.truncate(tree.at(name), size - less)
        tree.refused("%s, %d bytes less" % (name, less), 1, os.path.basename(name), str(size - less))
    for name, member in (("config.json", "d_model"), ("progress.json", "step"), ("optimizer/optimizer.json", "parameters"),
                         ("optimizer/optimizer.json", "kind"), ("tensors.json", "tensors")):
        tree = Tree(folder)
        tree.edit(name, lambda value, member=member: value.pop(member))
        tree.refused("%s without %s" % (name, member), 1, name, member)
        write(tree.at(name), b"{")
        tree.refused("%s is cut" % name, 1, name)
    for name, member in (("config.json", "arch_config_bytes"), ("optimizer/optimizer.json", "parameters")):
        tree = Tree(folder)  # the largest number is one like others
        tree.edit(name, lambda value, member=member: value.update({member: 2 ** 64 - 1}))
        tree.refused("%s: %s" % (name, member), 1, "18446744073709551615")
    for key, value in (("raw", "../../secret"), ("raw", "/etc/hostname"), ("raw", 5), ("npy", "a/../../b"),
                       ("shape", [3]), ("dtype", "F99"), ("encoding", "q9")):
        tree = Tree(folder)
        tree.edit("tensors.json", lambda index, k=key, v=value: index["tensors"]["tok.weight"].update({k: v}))
        tree.refused("tensors.json: %s = %r" % (key, value), 1, "tok.weight")
    tree = Tree(folder, "safetensors/valid/simple.safetensors")
    tree.refused("the tree of another format", 2, "safetensors", "config.json")
    empty = os.path.join(folder.path, "empty")
    os.mkdir(empty)
    folder.refused("an empty directory", empty, 2, "config.json")


# ---- targets ---------------------------------------------------------------------------------------------------------

def check_targets(folder):
    spec = os.path.join(GOLDEN, "oam/write/minimal_named/spec.json")
    folder.refused("a directory as target", spec, 2, out=os.path.dirname(folder.out))
    folder.refused("below a file", spec, 2, out=os.path.join(folder.out, "x.oam"))
    folder.fresh()
    code, err = without_room("pack", os.path.join(GOLDEN, "oam/write/transformer_adamw/spec.json"), folder.out)
    faults.check(code == 2 and "File too large" in err and read(folder.out) == OLD, "no room: exit %d: %s" % (code, err))
    folder.clean("no room")
    deep = os.path.join(folder.path, "new", "folders", "x.oam")
    faults.check(ckpt("pack", spec, deep)[0] == 0 and os.path.exists(deep), "missing parents are not made")
    if os.geteuid() != 0:
        os.chmod(os.path.dirname(folder.out), 0o500)
        faults.check(ckpt("pack", spec, folder.out)[0] == 2, "a folder without permission")
        os.chmod(os.path.dirname(folder.out), 0o700)
    tree = Tree(folder)
    inside = tree.at("config.json")  # what is read may be what is written
    faults.check(ckpt("pack", tree.path, inside)[0] == 0 and read(inside) == read(tree.source), "onto its own input")
    for words in ([], [spec], [spec, folder.out, "x"], ["--frobnicate", spec, folder.out]):
        code, _, err = ckpt("pack", *words)
        faults.check(code == 1 and "usage: ckpt pack" in err, "wrong use: %s" % words)


def main():
    seed = int(os.environ.get("CKPT_SEED", random.randrange(1 << 32)))
    print("CKPT_SEED=%d" % seed)
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(path)
        check_golden(folder)
        check_golden_refusals(folder)
        check_trees(folder)
        check_random(folder, seed)
        check_malformed(folder)
        check_edits(folder)
        check_arrays(folder)
        check_twins(folder, seed)
        check_broken_trees(folder)
        check_targets(folder)
    return faults.finish(900)


if __name__ == "__main__":
    sys.exit(main())
