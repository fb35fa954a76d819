# SPDX-License-Identifier: Apache-2.0
"""A second writer of .oam files, version 3, in plain Python: what `ckpt pack` is held against.

A model is a description as `ckpt pack` takes it (doc/pack.md) with bytes in the place of its data, and with the floats
of optimizer and progress as the integers of their bits.
"""
import struct

from expected_tree import OAM_DTYPES, fnv1a64, oam_tree

ENCODINGS = ["dense", "q4", "q8"]
CONFIG = ["config_version", "flags", "d_model", "n_layers", "d_vocab"]
FLOATS = ["learning_rate", "beta1", "beta2", "epsilon", "weight_decay"]


def fnv1a(data):
    """Of bytes that are mostly zeros: runs of them only multiply."""
    value = 0xCBF29CE484222325
    for part in data.split(b"\0" * 64):
        value = fnv1a64(part, value) if part else value
        value = value * pow(0x100000001B3, 64, 1 << 64) % (1 << 64)
    return value * pow(pow(0x100000001B3, -1, 1 << 64), 64, 1 << 64) % (1 << 64)


def config_payload(config):
    arch = config["arch_config"]
    dtypes = [OAM_DTYPES.index(config[name]) for name in ("weight_dtype", "state_dtype", "compute_dtype")]
    return struct.pack("<32s6I3B49x", config["architecture"].encode(), *(config[name] for name in CONFIG), len(arch),
                       *dtypes) + arch


def tensors_payload(tensors):
    index, blob = struct.pack("<2I", len(tensors), 0), b"".join(tensor["data"] for tensor in tensors)
    at = 0
    for tensor in tensors:
        shape = tensor["shape"]
        index += struct.pack("<128s2Q4B4x8Q", tensor["name"].encode(), at, len(tensor["data"]),
                             OAM_DTYPES.index(tensor["dtype"]), len(shape), ENCODINGS.index(tensor["encoding"]),
                             tensor["block_size"], *shape, *[0] * (8 - len(shape)))
        at += len(tensor["data"])
    return index + blob


def optimizer_payload(optimizer):
    return struct.pack("<16s5IqQ16x", optimizer["kind"].encode(), *(optimizer[name] for name in FLOATS),
                       optimizer["step"], len(optimizer["first_moment"]) // 4) + \
        optimizer["first_moment"] + optimizer["second_moment"]


def progress_payload(progress):
    return struct.pack("<B3xqQQ2IB3x32s32x", progress["phase"], progress["step"], progress["bytes_seen"],
                       progress["env_steps"], progress["learning_rate"], progress["best_metric"],
                       progress["lower_is_better"], progress["metric_name"].encode())


def write(model):
    payloads = [(1, config_payload(model["config"]), 1)]
    payloads += [(kind, tensors_payload(model[name]), 4096)
                 for kind, name in ((2, "weights"), (3, "state")) if model[name]]
    if model["optimizer"]:
        payloads.append((4, optimizer_payload(model["optimizer"]), 1))
    payloads.append((5, progress_payload(model["progress"]), 1))
    table = body = b""
    for kind, payload, page in payloads:
        table += struct.pack("<I8x2Q8xQ20x", kind, 4096 + len(body), len(payload), fnv1a(payload))
        body += payload + b"\0" * (-len(payload) % page)
    head = struct.pack("<4s3I2Q32x", b"OAM\0", 3, len(payloads), 0, 4096 + len(body), 0) + table
    head = head[:24] + struct.pack("<Q", fnv1a(head)) + head[32:]
    return head + b"\0" * (4096 - len(head)) + body


def model_of(data):
    """The model in an .oam of any version and layout, to be written anew."""
    sections = {row["kind"]: data[row["offset"]:row["offset"] + row["size"]] for row in oam_tree(data)[2]["sections"]}
    tree, index = oam_tree(data)[:2]
    config = {**tree["config.json"], "arch_config": tree.get("raw/arch_config.bin", b"")}
    rate, best = struct.unpack_from("<2I", sections["progress"], 28)
    model = {"config": config, "optimizer": None,
             "progress": {**tree["progress.json"], "learning_rate": rate, "best_metric": best}}
    for folder, name in (("tensors", "weights"), ("state", "state")):
        model[name] = [{**row, "name": key, "data": tree[row["raw"]]} for key, row in index[folder].items()]
    if "optimizer" in sections:
        floats = struct.unpack_from("<5I", sections["optimizer"], 16)
        model["optimizer"] = {**tree["optimizer/optimizer.json"], **dict(zip(FLOATS, floats)),
                              "first_moment": tree["raw/optimizer/first_moment.bin"],
                              "second_moment": tree.get("raw/optimizer/second_moment.bin", b"")}
    return model
