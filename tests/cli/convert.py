#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt convert`: every golden file to both formats, held against readers of the tests' own; what cannot be held, to the
line; there and back again; damage, memory, and targets that refuse."""
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

from cli import CKPT, GOLDEN, Faults, ckpt

import expected_tree
from expected_tree import BITS, Tensor, fnv1a64, json_string

OAM_TYPES = {"F32", "BF16", "F16", "I8", "I32", "U8", "F64", "I16", "I64", "U16", "U32", "U64", "BOOL", "C64", "C128"}
LIBRARY_ACCEPTS = {"header_does_not_start_with_brace_3.safetensors", "duplicate_key_2.safetensors",
                   "duplicate_key_4.safetensors", "metadata_not_a_map_of_texts_6.safetensors"}


# ---------------------------------------------------------------- reading, independently

class Model:
    """What a file holds: groups of tensors in their order, and the documents of its tree."""

    def __init__(self, path):
        self.tree, _ = expected_tree.tree_of(path)
        self.index = self.tree["tensors.json"]
        self.format = self.tree["checkpoint.json"]["format"]
        self.weights, self.state = self.group("tensors"), self.group("state")
        self.kinds = [section["kind"] for section in self.tree["checkpoint.json"]["sections"]]

    def group(self, name):
        return [Tensor(key, row["dtype"], row["shape"], row["encoding"], row["block_size"], 0, self.tree[row["raw"]])
                for key, row in self.index[name].items()]

    def moments(self):
        return len(self.tree["optimizer/optimizer.json"]["moments"]) if "optimizer" in self.kinds else 0


def quoted(name):
    """A name as messages have it: one line, not too long."""
    return "".join("\\x%02x" % ord(c) if c < " " or c == "\x7f" else c for c in name)


def header_of(path):
    with open(path, "rb") as stream:
        length = struct.unpack("<Q", stream.read(8))[0]
        return json.loads(stream.read(length).decode("utf-8")), 8 + length


def safetensors_bytes(tensors, metadata):
    """The file that the rules of writing demand."""
    rows = sorted(((-BITS[t.values()[0]], t.name.encode(), t) for t in tensors), key=lambda row: row[:2])
    fields = ['"__metadata__":{%s}' % ",".join(json_string(k) + ":" + json_string(v) for k, v in metadata.items())]
    fields, at, data = fields if metadata else [], 0, b""
    for _, _, tensor in rows:
        dtype, values = tensor.values()
        fields.append('%s:{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}' % (
            json_string(tensor.name), dtype, ",".join(map(str, tensor.shape)), at, at + len(values)))
        at += len(values)
        data += values
    header = ("{" + ",".join(fields) + "}").encode("utf-8")
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data


# ---------------------------------------------------------------- what cannot be held

def tensors(count):
    return "%d tensor%s" % (count, "" if count == 1 else "s")


def kernel_cache(model):
    return ["the kernel cache (%d bytes): it is not written any more" % section["size"]
            for section in model.tree["checkpoint.json"]["sections"] if section["kind"] == "legacy_kernel_cache"]


def not_in_safetensors(model):
    lines = ["tensor '%s': safetensors has no type C128" % quoted(t.name) for t in model.weights if t.dtype == "C128"]
    if model.state:
        lines.append("the state (%s): safetensors has no place for it beside the weights" % tensors(len(model.state)))
    if model.moments():
        lines.append("the optimizer (%s): safetensors has no place for it" % tensors(model.moments()))
    return lines + kernel_cache(model)


def why_not_in_oam(tensor):
    size = len(tensor.name.encode())
    if tensor.dtype not in OAM_TYPES:
        return ".oam has no type " + tensor.dtype
    if not size:
        return "in .oam a name is not empty"
    if size > 127:
        return "its name has %d bytes, .oam holds 127" % size
    if "\0" in tensor.name:
        return "its name holds a NUL"
    if len(tensor.shape) > 8:
        return "it has rank %d, .oam holds 8" % len(tensor.shape)
    return None


def not_in_oam(model):
    if model.format == "oam":
        return kernel_cache(model)
    lines = ["tensor '%s': %s" % (quoted(t.name), why_not_in_oam(t)) for t in model.weights if why_not_in_oam(t)]
    keys = [key for key in model.tree["metadata.json"] or {} if key not in ("format", "total_size")]
    return lines + ["metadata '%s': .oam has no place for it" % quoted(key) for key in keys]


def same_line(got, want):
    """Long names are cut in messages."""
    return got == want or ("..." in got and len(want) > 150 and got.split("...")[1] == want[-len(got.split("...")[1]):]
                           and want.startswith(got.split("...")[0]))


def check_lines(faults, where, text, path, prefix, want, last):
    """stderr is one line for each thing, in any order, then the last one."""
    lines = text.splitlines()
    start = "ckpt: %s: " % path
    faults.check(all(line.startswith(start + prefix) for line in lines[:len(want)]), where, text)
    got = sorted(line[len(start + prefix):] for line in lines[:len(want)])
    faults.check(len(got) == len(want) and all(map(same_line, got, sorted(want))), where, "told", got, "want", want)
    faults.check([line[len(start):] for line in lines[len(want):]] == last, where, "ends with", lines[len(want):])


def convert(faults, source, target, want, kind):
    """Without --drop it refuses what it lists; with --drop it lists the same and writes. True: it was written."""
    where = "%s to %s:" % (source, kind)
    code, out, err = ckpt("convert", source, target)
    faults.check(out == b"", where, "stdout", out)
    if not want:
        faults.check(code == 0 and err == "", where, "exit", code, err)
        return code == 0
    last = "%d thing%s of it cannot be held by %s; nothing was written (--drop leaves out what cannot be held)" % (
        len(want), "" if len(want) == 1 else "s", kind)
    faults.check(code == 1 and not os.path.exists(target), where, "exit", code, "and", os.path.exists(target))
    check_lines(faults, where, err, source, "", want, [last])
    code, out, err = ckpt("convert", "--drop", source, target)
    faults.check(code == 0 and out == b"", where, "exit", code, err)
    check_lines(faults, where, err, source, "left out: ", want, [])
    return code == 0


# ---------------------------------------------------------------- to safetensors

def expected_metadata(model, held, written):
    """written: what stands in the file, whose documents are compared as values."""
    if model.format != "oam":
        shards = {}
        for shard in model.tree["checkpoint.json"].get("shards", []):
            shards.update(header_of(os.path.join(GOLDEN, "safetensors/sharded/good", shard))[0].get("__metadata__", {}))
        return {**shards, **{k: v for k, v in (model.tree["metadata.json"] or {}).items() if isinstance(v, str)}}
    want = {"format": "pt"}
    for key, path in (("oam.config", "config.json"), ("oam.progress", "progress.json")):
        value = json.loads(written.get(key, "null"))
        exact = {name: value.pop(name) for name in list(value) if name.endswith("_bits")} if value else {}
        want[key] = written.get(key) if value == model.tree[path] else json.dumps(model.tree[path])
        if path == "progress.json" and "NaN" in model.tree[path].values():
            section = model.tree["sections/progress.bin"]
            bits = {"learning_rate_bits": "%08x" % struct.unpack_from("<I", section, 28),
                    "best_metric_bits": "%08x" % struct.unpack_from("<I", section, 32)}
            want[key] = want[key] if exact == bits else "bits: %s" % bits
        elif exact:
            want[key] = "no bits"
        if path == "config.json" and "raw/arch_config.bin" in model.tree:
            want["oam.arch_config"] = model.tree["raw/arch_config.bin"].hex()
    names = [t.name for t in held]
    if names != [t.name for t in sorted(held, key=lambda t: (-BITS[t.values()[0]], t.name.encode()))]:
        want["oam.order"] = "[" + ",".join(map(json_string, names)) + "]"
    return want


def check_to_safetensors(faults, source, folder):
    model, target = Model(source), os.path.join(folder, "out.safetensors")
    if not convert(faults, source, target, not_in_safetensors(model), "safetensors"):
        return
    held = [t for t in model.weights if t.dtype != "C128"]
    written = header_of(target)[0].get("__metadata__", {})
    want = safetensors_bytes(held, expected_metadata(model, held, written))
    with open(target, "rb") as stream:
        got = stream.read()
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    faults.check(got == want or expected_tree.same_but_nans(got[-(-len(got) % 4):], want[-(-len(want) % 4):]),
                 source, "first difference at", at, got[at - 60:at + 60], want[at - 60:at + 60])
    faults.check(ckpt("verify", "-q", target)[0] == 0, target, "does not verify")
    os.unlink(target)


# ---------------------------------------------------------------- to .oam

def default_config(held):
    share = {}
    for tensor in held:
        share[tensor.dtype] = share.get(tensor.dtype, 0) + len(tensor.data)
    largest = max(share.values(), default=0)
    dtype = next((d for d in expected_tree.OAM_DTYPES if largest and share.get(d, 0) == largest), "F32")
    return {"architecture": "", "config_version": 1, "flags": 0, "d_model": 0, "n_layers": 0, "d_vocab": 0,
            "weight_dtype": dtype, "state_dtype": "F32", "compute_dtype": "F32", "arch_config_bytes": 0,
            "arch_config": None}


DEFAULT_PROGRESS = {"phase": 0, "step": 0, "bytes_seen": 0, "env_steps": 0, "learning_rate": 0, "best_metric": 0,
                    "lower_is_better": False, "metric_name": ""}


def described(tensor):
    return tensor.name, tensor.dtype, tensor.shape, tensor.encoding, tensor.data


def check_to_oam(faults, source, folder):
    model, target = Model(source), os.path.join(folder, "out.oam")
    if not convert(faults, source, target, not_in_oam(model), ".oam"):
        return
    got = Model(target)
    if model.format == "oam":
        held, config, progress = model.weights, model.tree["config.json"], model.tree["progress.json"]
        for path in ("optimizer/optimizer.json", "raw/optimizer/first_moment.bin", "raw/optimizer/second_moment.bin"):
            faults.check(got.tree.get(path) == model.tree.get(path), source, path)
    else:
        held = [t for t in model.weights if not why_not_in_oam(t)]
        config, progress = default_config(held), DEFAULT_PROGRESS
    faults.check(got.tree["config.json"] == config, source, got.tree["config.json"], config)
    faults.check(got.tree["progress.json"] == progress, source, got.tree["progress.json"], progress)
    faults.check(got.tree.get("raw/arch_config.bin") == model.tree.get("raw/arch_config.bin"), source, "arch_config")
    faults.check(list(map(described, got.weights)) == list(map(described, held)), source, "weights differ")
    faults.check(list(map(described, got.state)) == list(map(described, model.state)), source, "state differs")
    faults.check(got.tree["checkpoint.json"]["version"] == 3, source, "is not version 3")
    faults.check(ckpt("verify", "-q", target)[0] == 0, target, "does not verify")
    check_there_and_back(faults, source, target, got, folder)
    os.unlink(target)


def check_there_and_back(faults, source, oam, model, folder):
    """A canonical .oam that safetensors holds whole comes back byte for byte."""
    if not_in_safetensors(model) or any(t.encoding != "dense" for t in model.weights):
        return
    middle, back = os.path.join(folder, "middle.safetensors"), os.path.join(folder, "back.oam")
    codes = [ckpt("convert", oam, middle)[0], ckpt("convert", middle, back)[0]]
    with open(oam, "rb") as one, open(back, "rb") as two:
        faults.check(codes == [0, 0] and one.read() == two.read(), source, "does not come back:", codes)
    faults.round_trips = getattr(faults, "round_trips", 0) + 1


def golden_files(valid):
    with open(os.path.join(GOLDEN, "manifest.json"), encoding="utf-8") as stream:
        for case in json.load(stream):
            if case["valid"] == valid and "contract" not in case:
                yield os.path.join(GOLDEN, case["file"])
    if valid:
        for name in ("holds_oam", "holds_safetensors"):
            yield os.path.join(GOLDEN, "envelope/accepted", name + ".ckpt")


def check_golden(faults, folder):
    for source in golden_files(True):
        check_to_safetensors(faults, source, folder)
        check_to_oam(faults, source, folder)
    faults.check(getattr(faults, "round_trips", 0) > 20, "only", getattr(faults, "round_trips", 0), "came back")
    for case in sorted(os.listdir(os.path.join(GOLDEN, "oam/write"))):
        source, target = os.path.join(GOLDEN, "oam/write", case, "expected.oam"), os.path.join(folder, "same.oam")
        code, _, err = ckpt("convert", source, target)
        with open(source, "rb") as one, open(target, "rb") as two:
            faults.check(code == 0 and one.read() == two.read(), source, "is not written as it was", err)


# ---------------------------------------------------------------- damage

def check_broken(faults, folder):
    for source in golden_files(False):
        if os.path.basename(source) in LIBRARY_ACCEPTS or "bitflip_legacy_kernel_cache" in source:
            continue  # what is not read is not verified
        for ending in (".oam", ".safetensors"):
            target = os.path.join(folder, "broken" + ending)
            code, out, err = ckpt("convert", "--drop", source, target)
            faults.check(code == 3 and out == b"" and err.startswith("ckpt: " + source + ": "),
                         source, "exit", code, err)
            faults.check(not os.path.exists(target), source, "wrote something")


def check_damage(faults, folder):
    """One bit of every section and chunk; the target keeps what it had."""
    for name, words in (("oam/valid/minimal_named.oam", "section payload checksum mismatch"),
                        ("oam/valid/big_weights_1mb.oam", "section payload checksum mismatch"),
                        ("envelope/accepted/holds_oam.ckpt", "chunk-mismatch"),
                        ("envelope/accepted/holds_safetensors.ckpt", "chunk-mismatch")):
        with open(os.path.join(GOLDEN, name), "rb") as stream:
            data = bytearray(stream.read())
        for at in (4097, len(data) * 2 // 3, len(data) - 1):
            damaged = os.path.join(folder, "damaged")
            data[at] ^= 4
            with open(damaged, "wb") as stream:
                stream.write(data)
            data[at] ^= 4
            if at < 4096 or ckpt("verify", "-q", damaged)[0] == 0:
                continue  # padding, or an envelope's header
            for ending in (".oam", ".safetensors"):
                target = os.path.join(folder, "kept" + ending)
                with open(target, "wb") as stream:
                    stream.write(b"old")
                code, _, err = ckpt("convert", "--drop", damaged, target)
                with open(target, "rb") as stream:
                    kept = stream.read(4)
                faults.check(code == 3 and kept == b"old" and words in err, name, at, "exit", code, kept, err)
    faults.check(not [n for n in os.listdir(folder) if n.startswith(".")], "temporaries stay:", os.listdir(folder))


def check_late_damage(faults, folder):
    """In the last chunk, when most of the target has been written."""
    source, sealed = os.path.join(GOLDEN, "oam/valid/big_weights_1mb.oam"), os.path.join(folder, "sealed")
    words = ("seal", "--schema", "a", "--learner", "b", "--data", "c", "--seed", "d", "--updates", "1",
             "--invocations", "1", "--chunk", "64K", source, sealed)
    faults.check(ckpt(*words)[0] == 0, "not sealed")
    weights = Model(source).weights
    with open(sealed, "r+b") as stream:
        data = stream.read()
        at = data.index(weights[-1].data) + len(weights[-1].data) - 1
        stream.seek(at)
        stream.write(bytes([data[at] ^ 1]))
    for ending in (".oam", ".safetensors"):
        target = os.path.join(folder, "late" + ending)
        code, _, err = ckpt("convert", sealed, target)
        faults.check(code == 3 and "chunk-mismatch" in err, "late damage: exit", code, err)
    faults.check(os.listdir(folder) == ["sealed"], "late damage leaves", os.listdir(folder))


# ---------------------------------------------------------------- targets

def check_targets(faults, folder):
    source, plain = os.path.join(GOLDEN, "oam/valid/minimal_named.oam"), os.path.join(folder, "plain")
    with open(plain, "wb"):
        pass
    os.mkdir(os.path.join(folder, "dir.oam"))
    for target, status, words in (
            ("out.ckpt", 1, "out.ckpt: a name that ends with .oam or .safetensors is wanted"),
            ("out", 1, "is wanted"), (".oam", 1, "is wanted"), ("out.safetensors.index.json", 1, "is wanted"),
            ("out.OAM", 1, "is wanted"), ("dir.oam", 2, "Is a directory"), ("plain/out.oam", 2, "Not a directory"),
            ("full.safetensors", 2, "No space left on device")):
        path = os.path.join(folder, target) if target != ".oam" else target
        if target.startswith("full"):
            os.symlink("/dev/full", path)
            words = "is no regular file"
        code, out, err = ckpt("convert", source, path)
        faults.check(code == status and out == b"" and words in err, target, "exit", code, err)
    for arguments in ((), (source,), (source, "a.oam", "b.oam"), ("--keep", source, "a.oam")):
        code, out, err = ckpt("convert", *arguments)
        faults.check(code == 1 and out == b"" and "usage: ckpt convert [--drop]" in err, arguments, code, err)
    code, _, err = ckpt("convert", os.path.join(folder, "no.oam"), os.path.join(folder, "x.oam"))
    faults.check(code == 2 and "No such file" in err, "no source:", code, err)
    raw = os.path.join(GOLDEN, "envelope/accepted/one_byte.ckpt")
    code, _, err = ckpt("convert", raw, os.path.join(folder, "x.oam"))
    faults.check(code == 3 and "the envelope's payload is no checkpoint" in err, raw, code, err)


def check_onto_itself(faults, folder):
    same, made = os.path.join(folder, "same.safetensors"), os.path.join(folder, "new/deep/made.safetensors")
    shutil.copy(os.path.join(GOLDEN, "safetensors/valid/header_unordered.safetensors"), same)
    codes = [ckpt("convert", same, made)[0], ckpt("convert", same, same)[0]]
    with open(same, "rb") as one, open(made, "rb") as two:
        faults.check(codes == [0, 0] and one.read() == two.read(), "onto itself:", codes)
    oam = os.path.join(folder, "v1.oam")
    shutil.copy(os.path.join(GOLDEN, "oam/valid/v1_full.oam"), oam)
    before = Model(oam)
    code, _, err = ckpt("convert", oam, oam)
    faults.check(code == 0 and Model(oam).tree["checkpoint.json"]["version"] == 3, "v1 onto itself:", err)
    faults.check(list(map(described, Model(oam).weights)) == list(map(described, before.weights)), "v1 differs")


# ---------------------------------------------------------------- names and metadata

def write_safetensors(path, names, metadata):
    with open(path, "wb") as stream:
        stream.write(safetensors_bytes([Tensor(n, "U8", [1], "dense", 0, 0, n.encode()[:1] or b"-") for n in names],
                                       metadata))


def check_names(faults, folder):
    source, target = os.path.join(folder, "names.safetensors"), os.path.join(folder, "names.oam")
    names = ['q"uote', "back\\slash", "tab\tnew\nline", "\x01\x1f\x7f", "é模😀", "a/b/../c", " ", "%s", "x" * 127]
    write_safetensors(source, names, {})
    codes = [ckpt("convert", source, target)[0], ckpt("convert", target, source)[0]]
    faults.check(codes == [0, 0], "names:", codes)
    faults.check(sorted(t.name for t in Model(target).weights) == sorted(names), "names of .oam")
    faults.check(sorted(n for n in header_of(source)[0] if n != "__metadata__") == sorted(names), "names come back")


def oam_with_name(name):
    """dtype_f32.oam, its tensor renamed and its checksums made right."""
    with open(os.path.join(GOLDEN, "oam/valid/dtype_f32.oam"), "rb") as stream:
        data = bytearray(stream.read())
    for at in range(64, 64 + 64 * struct.unpack_from("<I", data, 8)[0], 64):
        kind, offset, size = struct.unpack_from("<I8xQQ", data, at)
        if kind == 2:
            data[offset + 8:offset + 136] = name.encode().ljust(128, b"\0")
        struct.pack_into("<Q", data, at + 36, fnv1a64(bytes(data[offset:offset + size])))
    struct.pack_into("<Q", data, 24, 0)
    table = bytes(data[:64 + 64 * struct.unpack_from("<I", data, 8)[0]])
    struct.pack_into("<Q", data, 24, fnv1a64(table))
    return bytes(data)


def check_reserved_name(faults, folder):
    source, target = os.path.join(folder, "reserved.oam"), os.path.join(folder, "reserved.safetensors")
    with open(source, "wb") as stream:
        stream.write(oam_with_name("__metadata__"))
    want = ["tensor '__metadata__': safetensors has this name for its metadata"]
    faults.check(convert(faults, source, target, want, "safetensors"), "a reserved name")
    faults.check(list(header_of(target)[0]) == ["__metadata__"], "a reserved name:", header_of(target))
    code, tree, _ = ckpt("cat", source, "export/model.safetensors")
    faults.check(code == 0 and tree.count(b"__metadata__") == 1, "a reserved name in export/", tree)


CONFIG = {"architecture": "A", "config_version": 2, "flags": 3, "d_model": 4, "n_layers": 5, "d_vocab": 6,
          "weight_dtype": "U8", "state_dtype": "BF16", "compute_dtype": "F16", "arch_config_bytes": 2}
PROGRESS = {"phase": 1, "step": -(2 ** 63), "bytes_seen": 2 ** 64 - 1, "env_steps": 7, "learning_rate": 1e-45,
            "best_metric": "NaN", "lower_is_better": True, "metric_name": "m", "best_metric_bits": "ffc00001"}


def check_foreign_metadata(faults, folder):
    """Metadata that others wrote, or that was changed by hand."""
    source, target = os.path.join(folder, "foreign.safetensors"), os.path.join(folder, "foreign.oam")
    good = {"format": "pt", "oam.config": json.dumps(CONFIG), "oam.arch_config": "7b7d",
            "oam.progress": json.dumps(PROGRESS), "oam.order": '["c","no such","a","c"]'}
    write_safetensors(source, "abc", good)
    faults.check(convert(faults, source, target, [], ".oam"), "good metadata")
    got = Model(target)
    faults.check([t.name for t in got.weights] == ["c", "a", "b"], "order", [t.name for t in got.weights])
    faults.check(got.tree["config.json"] == {**CONFIG, "arch_config": {}}, got.tree["config.json"])
    faults.check(got.tree["sections/progress.bin"][32:36] == struct.pack("<I", 0xffc00001), "NaN bits")
    faults.check(got.tree["progress.json"]["step"] == -(2 ** 63), got.tree["progress.json"])
    for change, want in (
            ({"oam.config": "{"}, "metadata 'oam.config': not well-formed JSON"),
            ({"oam.config": json.dumps({**CONFIG, "d_model": -1})}, "metadata 'oam.config': d_model"),
            ({"oam.config": json.dumps({**CONFIG, "architecture": "x" * 40})},
             "metadata 'oam.config': .oam architecture must fit in 31 non-NUL bytes"),
            ({"oam.config": json.dumps({**CONFIG, "architecture": "x\0y"})}, "has 3 bytes and a NUL among them"),
            ({"oam.config": json.dumps({**CONFIG, "weight_dtype": "F8_E4M3"})}, ".oam has no type F8_E4M3"),
            ({"oam.config": json.dumps({**CONFIG, "arch_config_bytes": 2 ** 64 - 1})},
             "it says that the architecture config has 18446744073709551615 bytes"),
            ({"oam.progress": json.dumps({**PROGRESS, "metric_name": "x" * 32})},
             "metadata 'oam.progress': .oam metric name must fit in 31 non-NUL bytes"),
            ({"oam.progress": json.dumps({**PROGRESS, "metric_name": "\0"})}, "has 1 bytes and a NUL among them"),
            ({"oam.arch_config": "7b7"}, "metadata 'oam.config': it says that the architecture config has 2 bytes"),
            ({"oam.arch_config": "7b7g"}, "metadata 'oam.config': oam.arch_config is not 4 hexadecimal digits"),
            ({"oam.progress": "[]"}, "metadata 'oam.progress': "),
            ({"oam.order": '["c", 1]'}, "metadata 'oam.order': it is not a JSON array of names"),
            ({"oam.order": '["c"] x'}, "metadata 'oam.order': it is not a JSON array of names"),
            ({"oam.more": ""}, "metadata 'oam.more': .oam has no place for it"),
            ({"k\0": "v"}, "metadata 'k\\000': .oam has no place for it")):
        write_safetensors(source, "abc", {**good, **change})
        os.unlink(target)
        code, _, err = ckpt("convert", source, target)
        said = err.splitlines()
        faults.check(code == 1 and not os.path.exists(target) and len(said) == 2, change, "exit", code, err)
        faults.check(want in said[0] or want.replace("\\000", "\\x00") in said[0], change, said[0])
        code, _, err = ckpt("convert", "--drop", source, target)
        faults.check(code == 0 and len(err.splitlines()) == 1, change, "--drop exit", code, err)
        faults.check(ckpt("verify", "-q", target)[0] == 0, change, "does not verify")
        tree = Model(target).tree
        for key, path, member in (("oam.config", "config.json", "architecture"),
                                  ("oam.progress", "progress.json", "metric_name")):
            left_out = key in change or (key == "oam.config" and "oam.arch_config" in change)
            faults.check((tree[path][member] == "") == left_out, change, path, tree[path])
    write_safetensors(source, "abc", {"oam.arch_config": "7b7d"})
    want = ["metadata 'oam.arch_config': .oam has no place for it"]
    faults.check(convert(faults, source, os.path.join(folder, "alone.oam"), want, ".oam"), "arch_config alone")


NO_DIGESTS = """openssl_conf = init
[init]
providers = providers
[providers]
null = null
[null]
activate = 1
"""


def check_no_digests(faults, folder):
    """A crypto library that can do nothing is no fault of what is converted."""
    config, target = os.path.join(folder, "openssl.cnf"), os.path.join(folder, "none.oam")
    with open(config, "w", encoding="utf-8") as stream:
        stream.write(NO_DIGESTS)
    for option in ([], ["--drop"]):
        done = subprocess.run([CKPT, "convert", *option, os.path.join(GOLDEN, "envelope/accepted/holds_oam.ckpt"), target],
                              env={**os.environ, "OPENSSL_CONF": config}, capture_output=True, text=True, check=False)
        faults.check(done.returncode == 2 and done.stderr.endswith("the crypto library has no SHA-256\n"),
                     "no SHA-256: exit", done.returncode, done.stderr)
        faults.check(not os.path.exists(target), "no SHA-256: the target is there")


def check_shards(faults, folder):
    """The metadata of a set: what the shards do not agree on, and values that are no strings."""
    index, target = os.path.join(folder, "set.safetensors.index.json"), os.path.join(folder, "set.safetensors")
    write_safetensors(os.path.join(folder, "1.safetensors"), "ab", {"format": "pt", "who": "one", "a": "1"})
    write_safetensors(os.path.join(folder, "2.safetensors"), "cd", {"format": "pt", "who": "two", "b": "2"})
    for metadata, want in (
            ({"total_size": 4, "total_parameters": 4, "x": "y", "who": "me"},
             ["metadata 'who': the files of the set do not agree on its value"]),
            ({"n": [1, 2], "who": None}, ["metadata 'n': safetensors has no values but strings",
                                          "metadata 'who': safetensors has no values but strings",
                                          "metadata 'who': the files of the set do not agree on its value"])):
        with open(index, "w", encoding="ascii") as stream:
            json.dump({"metadata": metadata, "weight_map": dict(zip("abcd", ("1.safetensors",) * 2 +
                                                                    ("2.safetensors",) * 2))}, stream)
        if os.path.exists(target):
            os.unlink(target)
        convert(faults, index, target, want, "safetensors")
        header, start = header_of(target)
        who = "me" if metadata["who"] else "two"
        faults.check(header.pop("__metadata__") == {"format": "pt", "who": who, "a": "1", "b": "2",
                                                    **({"x": "y"} if "x" in metadata else {})}, header)
        with open(target, "rb") as stream:
            faults.check(list(header) == list("abcd") and stream.read()[start:] == b"abcd", header)


# ---------------------------------------------------------------- memory

SPARSE = 1 << 29


def peak(*arguments):
    """(exit code, peak of memory in bytes) of a child of its own."""
    code = ("import resource, subprocess, sys\n"
            "done = subprocess.run(sys.argv[1:])\n"
            "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n")
    done = subprocess.run([sys.executable, "-c", code, CKPT, *arguments], capture_output=True, check=True)
    status, kilobytes = done.stdout.split()
    return int(status), 1024 * int(kilobytes)


def check_memory(faults, folder):
    """Half a gigabyte, there and back, in less than an eighth of it."""
    if os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize < 5 * SPARSE:
        print("skipped: no room for", SPARSE, "bytes")
        return
    source, oam, back = (os.path.join(folder, name) for name in ("big.safetensors", "big.oam", "back.safetensors"))
    header = b'{"w":{"dtype":"F32","shape":[512,262144],"data_offsets":[0,%d]}}' % SPARSE
    with open(source, "wb") as stream:
        stream.write(struct.pack("<Q", len(header)) + header)
        stream.truncate(8 + len(header) + SPARSE)
    for arguments in ((source, oam), (oam, back)):
        code, memory = peak("convert", *arguments)
        faults.check(code == 0 and memory < 64 << 20, arguments, "exit", code, "with", memory, "bytes")
    faults.check(os.path.getsize(back) > SPARSE, os.path.getsize(back))


def main():
    faults = Faults()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        for test in (check_golden, check_broken, check_damage, check_late_damage, check_targets, check_onto_itself,
                     check_names, check_reserved_name, check_foreign_metadata, check_no_digests, check_shards, check_memory):
            inner = os.path.join(folder, test.__name__)
            os.mkdir(inner)
            test(faults, inner)
            shutil.rmtree(inner)
    return faults.finish(3000)


if __name__ == "__main__":
    sys.exit(main())
