# SPDX-License-Identifier: Apache-2.0
"""Does anything get worse with size? Time per byte over that of the smallest file: 1 is ideal, less is better.

The files are sparse, warm in the page cache, and read through the mount by a reader that drops what it has seen: fresh
memory is slow on virtual machines, and more of it would be needed for the larger files.
"""
import os

import make_data
from figures import Rounds, show
from make_data import MIB


def measure(bench, source, mode, name):
    with bench.ckptfs(source).warm() as mount:
        return bench.reader(mode, mount.at(name))[0]


def candidates(bench, times):
    oam, envelope = bench.path("size%d.oam" % times), bench.path("size%d.alphackp" % times)
    make_data.oam(oam, bench.sizes(times), bench.zeros)
    make_data.envelope_of_zeros(envelope, times * bench.mb * MIB)
    payload = os.path.join("envelope", "payload.bin")
    return {"first.oam": lambda: measure(bench, oam, "stream", bench.BIG) / times,
            "first.envelope": lambda: measure(bench, envelope, "stream", payload) / times,
            "first_byte.envelope": lambda: measure(bench, envelope, "byte", payload),
            "verify.oam": lambda: bench.verify(oam) / times,
            "verify.envelope": lambda: bench.verify(envelope) / times}


def run_size(bench):
    tables = {times: candidates(bench, times) for times in ((1, 4, 16) if bench.big else (1, 4))}
    for name in tables[1]:
        rounds = Rounds(**{"x%d" % times: table[name] for times, table in tables.items()})
        for times in list(tables)[1:]:
            show("size.%s.ratio_%dx" % (name, times), rounds.cost("x%d" % times, "x1"), "ratio")
        if name.startswith("first_byte"):
            show("size.%s.ms" % name, 1e3 * rounds.seconds("x%d" % max(tables)), "ms")
