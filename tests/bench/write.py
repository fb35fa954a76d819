# SPDX-License-Identifier: Apache-2.0
"""ckpt seal against one thread that reads and hashes the payload, and writes nothing."""
import os
import subprocess
import time

from figures import Rounds, show
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


def run_write(bench):
    rounds = Rounds(
        seal=lambda: seal(bench, bench.npy),
        sha256=lambda: bench.serial("sha256", bench.npy)[0])
    show("seal.ratio_evp", rounds.speed("seal", "sha256"), "ratio")
