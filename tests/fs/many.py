#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Very many and very large tensors: listings stay near what a plain directory costs, nothing is read to list, and a
terabyte opens at once."""
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import lib
import make

COUNT = 100000


def timed(*words):
    start = time.monotonic()
    out = subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout
    return out, time.monotonic() - start


def lines(*words):
    out, took = timed(*words)
    print("%-44s %8.3f s" % (" ".join(words[:2]), took))
    return out.count(b"\n")


def check_many():
    file = lib.path("many.safetensors")
    make.safetensors_sparse(file, [("layers.%06d.weight" % i, 16) for i in range(COUNT)])
    with lib.mounted(file) as mount:
        tensors = mount + "/tensors"
        for _ in ("first", "again"):
            lib.want(lines("ls", "-f", tensors) == COUNT + 2, "ls -f: other count")
            lib.want(lines("ls", "-l", tensors) == COUNT + 1, "ls -l: other count")
        lib.want(lines("find", mount, "-name", "*.npy") == COUNT, "find: other count")
        lib.want(lines("find", mount, "-size", "-1k", "-newermt", "1970-01-01") >= 0, "find by attributes")
        names = sorted(os.listdir(tensors))
        lib.want(names[0] == "layers.000000.weight.npy" and names[-1] == "layers.%06d.weight.npy" % (COUNT - 1),
                 "listdir: %s ... %s", names[0], names[-1])
        lib.want(len(lib.read(tensors + "/layers.077777.weight.npy")) == 128 + 16, "one of many: other size")
        lib.want(not os.path.exists(tensors + "/layers.100000.weight.npy"), "a file that is not there")
        numbers = {entry.inode() for entry in os.scandir(tensors)}
        lib.want(len(numbers) == COUNT, "only %d inode numbers", len(numbers))


def check_large(file, size):
    start = time.monotonic()
    with lib.mounted(file) as mount:
        print("%-44s %8.3f s" % ("mount " + os.path.basename(file), time.monotonic() - start))
        raw = mount + "/raw/tensors/"
        lib.want(os.path.getsize(raw + "big.bin") == size, "%s: size %d", file, os.path.getsize(raw + "big.bin"))
        lib.want(os.path.getsize(mount + "/tensors/big.npy") == size + 128, "%s: size of the view", file)
        blocks = os.statvfs(mount)
        lib.want(blocks.f_blocks * blocks.f_frsize >= os.path.getsize(file), "%s: statfs", file)
        return os.path.getsize(mount + "/export/model.safetensors") if os.path.isdir(mount + "/export") else 0


def check_terabyte():
    size = 1 << 40
    file = lib.path("large.safetensors")
    make.safetensors_sparse(file, [("big", size), ("end", 3)])
    check_large(file, size)
    with lib.mounted(file) as mount:
        with open(mount + "/raw/tensors/big.bin", "rb") as stream:
            stream.seek(size - 5)
            lib.want(stream.read() == bytes(5), "the end of a terabyte")
    file = lib.path("large.oam")
    make.oam_sparse(file, [("big", size), ("end", 3)])
    lib.want(check_large(file, size) > size, "large.oam: size of the export")


check_many()
check_terabyte()
lib.finish()
