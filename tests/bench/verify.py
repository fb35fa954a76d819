# SPDX-License-Identifier: Apache-2.0
"""ckpt verify against one thread that reads and hashes, and against itself on one core."""
import os

import make_data
from figures import Rounds, show
from make_data import MIB


def on_one_core():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def run_verify(bench):
    # Nothing but chunks: what is in the other envelope has sections of its own, which are checked too.
    chunks = bench.made("chunks.alphackp", make_data.envelope_of_zeros, bench.mb * MIB)
    rounds = Rounds(
        oam=lambda: bench.verify(bench.oam),
        fnv1a=lambda: bench.serial("fnv1a", bench.oam)[0],
        envelope=lambda: bench.verify(bench.envelope),
        sha256=lambda: bench.serial("sha256", bench.envelope)[0],
        chunks=lambda: bench.verify(chunks),
        chunks_sha256=lambda: bench.serial("sha256", chunks)[0],
        one_core=lambda: bench.verify(chunks, preexec_fn=on_one_core))
    show("verify.oam.ratio_serial", rounds.speed("oam", "fnv1a"), "ratio")
    show("verify.envelope.ratio_evp", rounds.speed("envelope", "sha256"), "ratio")
    show("verify.envelope.chunks.ratio_evp", rounds.speed("chunks", "chunks_sha256"), "ratio")
    show("sha256.scaling", rounds.speed("chunks", "one_core"), "ratio")
