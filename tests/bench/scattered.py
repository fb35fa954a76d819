# SPDX-License-Identifier: Apache-2.0
"""Reading here and there in one large tensor whose section is verified: random reads, rows of a mapping."""
from figures import Rounds, show
from mounts import warm

THREADS, BLOCK, READS = 4, 64 << 10, 1024  # reads a thread
ROWS = 2000
READ_AHEADS = 128, 256, 1024  # KiB, of the ceiling: the kernel's default, ckptfs's, the largest request


def candidates(bench, *words):
    """words: the reader's, with None for the file."""
    def read(path):
        return bench.reader(*(path if word is None else word for word in words))[0]

    def mounted():
        with bench.ckptfs(bench.oam).warm() as mount:
            bench.reader("byte", mount.at(bench.SMALL))
            return read(mount.at(bench.BIG))

    def ceiling(kib):
        with bench.ceiling(bench.npy, kib).warm() as mount:
            return read(mount.at("data"))

    def raw():
        warm(bench.npy)
        return read(bench.npy)
    return {"mounted": mounted, "raw": raw,
            **{"ceiling%d" % kib: lambda kib=kib: ceiling(kib) for kib in READ_AHEADS}}


def show_ceiling(name, rounds):
    """The ceiling at its best read-ahead."""
    best = rounds.quickest(*("ceiling%d" % kib for kib in READ_AHEADS))
    show(name + ".ratio_ceiling", rounds.speed("mounted", best), "ratio")
    for kib in READ_AHEADS:
        show("%s.ratio_ceiling.%dKiB" % (name, kib), rounds.speed("mounted", "ceiling%d" % kib), "ratio")


def run_random(bench):
    rounds = Rounds(**candidates(bench, "random", None, THREADS, BLOCK, READS))
    show_ceiling("read.random64k", rounds)
    show("read.random64k.ratio_raw", rounds.speed("mounted", "raw"), "ratio")


def run_mmap(bench):
    rounds = Rounds(**candidates(bench, "rows", None, ROWS))
    show_ceiling("mmap.rows", rounds)
    show("mmap.rows.ratio_raw", rounds.speed("mounted", "raw"), "ratio")
