# SPDX-License-Identifier: Apache-2.0
"""The daemon's peak resident memory while many read at once."""
from figures import show

READERS, BLOCK = 64, 1 << 20


def peak(bench, source):
    """64 threads, in large reads and in small ones, about the whole of a tensor in all."""
    with bench.ckptfs(source).warm() as mount:
        bench.reader("random", mount.at(bench.BIG), READERS, BLOCK, max(bench.mb // READERS, 1))
        bench.reader("random", mount.at(bench.BIG), READERS, BLOCK // 16, 64)
        return mount.peak_mb()


def run_memory(bench):
    peaks = {"oam": peak(bench, bench.oam), "envelope": peak(bench, bench.envelope),
             "safetensors": peak(bench, bench.safetensors)}
    show("daemon.rss_peak.MB", max(peaks.values()), "MB")
    for name, value in peaks.items():
        show("daemon.rss_peak.%s.MB" % name, value, "MB")
