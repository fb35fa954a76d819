#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs benchmarks: bench.py BUILDDIR [GROUP...]. Prints one figure a line: NAME VALUE UNIT.

Groups: hash read random mmap many memory verify size open write gpu (all of them by default). Variables:
  BENCH_MB      MiB of the largest tensor (1024)
  BENCH_ROUNDS  rounds, of which medians are taken (5)
  BENCH_BIG     1: "size" goes up to 16 times BENCH_MB (sparse, but in the page cache: 17 GiB of memory for 16 GiB)
  BENCH_DIR     where the data is made (the build folder; up to 4.5 times BENCH_MB, removed afterwards)

Names: ".ratio_X" of a read or a verification is a speed over the speed of X (more is better); of a listing and of a
size it is a time over the time of X (less is better). X: "ceiling" a FUSE file system that does nothing but pread;
"raw" plain files in the page cache; "serial" and "evp" one thread that reads and hashes; "pinned_copy" a copy from
page-locked memory to the device; "device_copy" one on the device; "cp" a copy and a flush to the disk.
"""
import functools
import importlib
import os
import subprocess
import sys
import tempfile
import time

import make_data
from make_data import MIB
from mounts import Mount, warm

GROUPS = ["hash", "read", "random", "mmap", "many", "memory", "verify", "size", "open", "write", "gpu"]
MODULES = {"random": "scattered", "mmap": "scattered"}  # the others are named as their group


class Bench:
    """The programs, and the data, which is made when it is asked for."""

    def __init__(self, build, work):
        self.build, self.work = os.path.abspath(build), work
        self.mb = int(os.environ.get("BENCH_MB", "1024"))
        self.big = os.environ.get("BENCH_BIG") == "1"
        self.noise = make_data.Noise(self.tool("serial"))
        self.zeros = make_data.Zeros()

    # ---- programs --------------------------------------------------------------------------------------------------

    def program(self, name):
        return os.path.join(self.build, name)

    def tool(self, name):
        return self.program("tests/bench/" + name)

    def ckptfs(self, source, *options):
        return Mount([self.program("ckptfs"), *options, source], [self.program("ckptfs"), "-u"])

    def ceiling(self, source, read_ahead_kb=1024):
        return Mount([self.tool("ceiling"), source], [self.program("ckptfs"), "-u"], READ_AHEAD_KB=str(read_ahead_kb))

    def reader(self, *words):
        """(wall-clock seconds, CPU seconds of the reader)."""
        words = [self.tool("reader"), *map(str, words)]
        fields = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        return float(fields[0]), float(fields[1])

    def serial(self, digest, path):
        """(wall-clock seconds, CPU seconds of the hashing alone)."""
        warm(path)
        words = [self.tool("serial"), digest, path]
        fields = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        return float(fields[0]), float(fields[1])

    def verify(self, path, **options):
        warm(path)
        start = time.perf_counter()
        subprocess.run([self.program("ckpt"), "verify", path], check=True, stdout=subprocess.DEVNULL, **options)
        return time.perf_counter() - start

    # ---- data ------------------------------------------------------------------------------------------------------

    SMALL, BIG, LAST = (os.path.join("tensors", make_data.tensor_name(n) + ".npy") for n in range(3))

    def sizes(self, times=1):
        """A tensor that is nearly all of its section between two small ones."""
        return [16 << 10, times * self.mb * MIB, 16 << 10]

    def path(self, name):
        return os.path.join(self.work, name)

    def made(self, name, make, *rest):
        make(self.path(name), *rest)
        os.sync()  # writing it out is not to fall into a measurement
        return self.path(name)

    @functools.cached_property
    def npy(self):
        return self.made("big.npy", make_data.npy, self.sizes()[1], self.noise)

    @functools.cached_property
    def oam(self):
        return self.made("big.oam", make_data.oam, self.sizes(), self.noise)

    @functools.cached_property
    def safetensors(self):
        return self.made("big.safetensors", make_data.safetensors, self.sizes(), self.noise)

    @functools.cached_property
    def envelope(self):
        return self.made("big.alphackp", make_data.envelope, self.oam)


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(GROUPS):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_DIR", sys.argv[1])) as work:
        bench = Bench(sys.argv[1], work)
        for group in sys.argv[2:] or GROUPS:
            if group == "hash":
                subprocess.run([bench.tool("bench_hash")], check=True)
                continue
            module = importlib.import_module(MODULES.get(group, group))
            getattr(module, "run_" + group)(bench)


if __name__ == "__main__":
    main()
