# SPDX-License-Identifier: Apache-2.0
"""Does anything get worse with size? Time per byte over that of the smallest file: 1 is ideal, less is better.

The files are sparse and out of the page cache before each measurement, so that it is the same work whether or not the
memory could hold them.
"""
import os

import make_data
from figures import Rounds, show
from make_data import MIB
from mounts import forget


def first_read(bench, source, name):
    forget(source)
    with bench.ckptfs(source) as mount:
        return bench.reader("seq", mount.at(name))[0]


def first_byte(bench, source, name):
    forget(source)
    with bench.ckptfs(source) as mount:
        return bench.reader("byte", mount.at(name))[0]


def verify(bench, source):
    forget(source)
    return bench.verify(source)


def candidates(bench, times):
    oam, envelope = bench.path("size%d.oam" % times), bench.path("size%d.alphackp" % times)
    make_data.oam(oam, bench.sizes(times), bench.zeros)
    make_data.envelope_of_zeros(envelope, times * bench.mb * MIB)
    payload = os.path.join("envelope", "payload.bin")
    return {"first.oam": lambda: first_read(bench, oam, bench.BIG) / times,
            "first.envelope": lambda: first_read(bench, envelope, payload) / times,
            "first_byte.envelope": lambda: first_byte(bench, envelope, payload),
            "verify.oam": lambda: verify(bench, oam) / times,
            "verify.envelope": lambda: verify(bench, envelope) / times}


def run_size(bench):
    tables = {times: candidates(bench, times) for times in ((1, 4, 16) if bench.big else (1, 4))}
    for name in tables[1]:
        rounds = Rounds(**{"x%d" % times: table[name] for times, table in tables.items()})
        for times in list(tables)[1:]:
            show("size.%s.ratio_%dx" % (name, times), rounds.cost("x%d" % times, "x1"), "ratio")
        if name.startswith("first_byte"):
            show("size.%s.ms" % name, 1e3 * rounds.seconds("x%d" % max(tables)), "ms")
