# SPDX-License-Identifier: Apache-2.0
"""Does anything get worse with size? Time per byte over that of the smallest file: 1 is ideal, less is better.

The files are sparse and warm in the page cache, one at a time: together the sizes would not fit the memory that the
largest needs, and what was dropped would be measured instead of ckptfs. What there is no memory for is left out.
Files are read through the mount by a reader that drops what it has seen: fresh memory is slow on virtual machines.
"""
import os

import make_data
from figures import Rounds, show
from make_data import MIB

BESIDES = 1 << 30  # bytes of memory for everything but the source
THREADS, BLOCK, READS = 4, 64 << 10, 128  # of random reads: so few that hardly any finds what another one left


def available():
    """Bytes of memory that the page cache can have."""
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable")) << 10


def sizes(bench):
    for times in (1, 4, 16) if bench.big else (1, 4):
        need = times * bench.mb * MIB + BESIDES
        if need <= available():
            yield times
        else:
            print("size.%dx not measured: needs %d MiB of memory, not %d" % (times, need // MIB, available() // MIB))


def drop(path):
    """From the page cache."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Sources:
    """A file of each format and size; the one asked for gets the page cache for itself."""

    def __init__(self, bench, numbers):
        self.paths = {}
        for times in numbers:
            self.paths["oam", times] = bench.made("size%d.oam" % times, make_data.oam, bench.sizes(times), bench.zeros)
            self.paths["envelope", times] = bench.made("size%d.alphackp" % times, make_data.envelope_of_zeros,
                                                       times * bench.mb * MIB)

    def alone(self, *key):
        for path in (path for other, path in self.paths.items() if other != key):
            drop(path)
        return self.paths[key]


def candidates(bench, sources, times, peaks):
    """Seconds for as many bytes, whatever the size."""
    payload = os.path.join("envelope", "payload.bin")

    def mounted(kind, mode, *words, first=None):
        """Of one reader; the first byte of another file was read before, for what is verified at that."""
        with bench.ckptfs(sources.alone(kind, times)).warm() as mount:
            if first:
                bench.reader("byte", mount.at(first))
            took = bench.reader(mode, mount.at(bench.BIG if kind == "oam" else payload), *words)[0]
            peaks[times] = max(peaks.get(times, 0), mount.peak_mb())
            return took

    return {"first.oam": lambda: mounted("oam", "stream") / times,
            "first.known.oam": lambda: mounted("oam", "stream", first=bench.SMALL) / times,
            "first.envelope": lambda: mounted("envelope", "stream") / times,
            "first_byte.envelope": lambda: mounted("envelope", "byte"),
            "random64k.oam": lambda: mounted("oam", "random", THREADS, BLOCK, READS, first=bench.SMALL),
            "verify.oam": lambda: bench.verify(sources.alone("oam", times)) / times,
            "verify.envelope": lambda: bench.verify(sources.alone("envelope", times)) / times}


def run_size(bench):
    numbers, peaks = list(sizes(bench)), {}
    if not numbers:
        return
    sources = Sources(bench, numbers)
    tables = {times: candidates(bench, sources, times, peaks) for times in numbers}
    for name in tables[1]:
        rounds = Rounds(**{"x%d" % times: table[name] for times, table in tables.items()})
        for times in numbers[1:]:
            show("size.%s.ratio_%dx" % (name, times), rounds.cost("x%d" % times, "x1"), "ratio")
        if name.startswith("first_byte"):
            show("size.%s.ms" % name, 1e3 * rounds.seconds("x%d" % max(numbers)), "ms")
    for times in numbers:
        show("size.rss_peak_%dx.MB" % times, peaks[times], "MB")
