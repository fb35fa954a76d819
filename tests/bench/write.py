# SPDX-License-Identifier: Apache-2.0
"""ckpt seal against one thread that reads and hashes the payload, and writes nothing; what ckpt quantize gets done a
core."""
import array
import json
import mmap
import os
import random
import resource
import subprocess
import time

from convert import run_convert
from figures import Rounds, show
from make_data import MIB
from mounts import warm

IDENTITIES = ["--schema", "s", "--learner", "l", "--data", "d", "--seed", "s", "--updates", "1", "--invocations", "1"]


def seal(bench, payload):
    """Wall-clock seconds, until the envelope is on the disk."""
    sealed = bench.path("sealed.alphackp")
    warm(payload)
    words = [bench.program("ckpt"), "seal", *IDENTITIES, "--chunk", "4M", payload, sealed]
    start = time.perf_counter()
    subprocess.run(words, check=True)
    seconds = time.perf_counter() - start
    os.unlink(sealed)
    return seconds


def plain_write(bench, size):
    """Seconds for writing as many bytes around the page cache and flushing them: what the disk can do."""
    path, block = bench.path("written"), mmap.mmap(-1, 4 * MIB)
    block.write(os.urandom(MIB) * 4)
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    except OSError:  # a file system without it
        file = os.open(path, os.O_WRONLY | os.O_CREAT)
    start = time.perf_counter()
    for _ in range(size // len(block)):
        os.write(file, block)
    os.fsync(file)
    seconds = time.perf_counter() - start
    os.close(file)
    os.unlink(path)
    return seconds


# ---- quantizing ----------------------------------------------------------------------------------------------------

def make_f32(path, bench):
    """An .oam of one float32 matrix."""
    chance = random.Random(1)
    row = array.array("f", (chance.gauss(0, 0.02) for _ in range(MIB // 4)))
    with open(path + ".bin", "wb") as file:
        for _ in range(bench.mb):
            file.write(row)
    spec = {"format": "oam",
            "config": {"architecture": "Bench", "config_version": 1, "flags": 0, "d_model": 0, "n_layers": 0, "d_vocab": 256,
                       "weight_dtype": "F32", "state_dtype": "F32", "compute_dtype": "F32"},
            "weights": [{"name": "w", "dtype": "F32", "shape": [bench.mb, MIB // 4], "data": os.path.basename(path) + ".bin"}],
            "progress": {"phase": 0, "step": 0, "bytes_seen": 0, "env_steps": 0, "learning_rate": 0, "best_metric": 0,
                         "lower_is_better": True, "metric_name": "loss"}}
    with open(path + ".json", "w") as file:
        json.dump(spec, file)
    subprocess.run([bench.program("ckpt"), "pack", path + ".json", path], check=True)
    os.unlink(path + ".bin")


def quantize(bench, kind, source):
    """CPU seconds of all threads: reading, verifying, quantizing, hashing and writing."""
    warm(source)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([bench.program("ckpt"), "quantize", kind, source, bench.path("quantized.oam")], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.unlink(bench.path("quantized.oam"))
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_quantize(bench):
    source = bench.made("f32.oam", make_f32, bench)
    rounds = Rounds(q4=lambda: quantize(bench, "q4", source), q8=lambda: quantize(bench, "q8", source))
    slower = max(rounds.seconds("q4"), rounds.seconds("q8"))
    show("quantize.GBps", bench.mb * MIB / 1e9 / slower, "GB/s")


# ---- all of it -----------------------------------------------------------------------------------------------------

def run_write(bench):
    rounds = Rounds(
        seal=lambda: seal(bench, bench.npy),
        sha256=lambda: bench.serial("sha256", bench.npy)[0],
        disk=lambda: plain_write(bench, os.path.getsize(bench.npy)))
    show("seal.ratio_evp", rounds.speed("seal", "sha256"), "ratio")
    show("seal.ratio_disk", rounds.speed("seal", "disk"), "ratio")
    run_quantize(bench)
    run_convert(bench)
