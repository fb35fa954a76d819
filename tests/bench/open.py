# SPDX-License-Identifier: Apache-2.0
"""What opening costs, whatever the size of the file and the number of its tensors. Files are sparse."""
import time

import make_data
from figures import Rounds, show
from many import mount_and_list, mounted


def equal(count, total):
    return [total // count] * count


def run_size(bench, name, make, count, small, huge):
    paths = {"small": bench.path("small." + name), "huge": bench.path("huge." + name)}
    make(paths["small"], equal(count, small), bench.zeros)
    make(paths["huge"], equal(count, huge), bench.zeros)
    rounds = Rounds(huge=lambda: mount_and_list(bench, paths["huge"]),
                    small=lambda: mount_and_list(bench, paths["small"]))
    label = "open.%s_%dGB" % (name, huge >> 30)
    show(label + ".ratio_small", rounds.cost("huge", "small"), "ratio")
    show(label + ".ms", 1e3 * rounds.seconds("huge"), "ms")


def run_count(bench):
    paths = {count: bench.path("many%d.safetensors" % count) for count in (10_000, 100_000)}
    for count, path in paths.items():
        make_data.safetensors(path, equal(count, count << 10), bench.zeros)
    for name, command in ("ls_f", ["ls", "-f"]), ("ls_l", ["ls", "-l"]), ("find", ["find"]):
        rounds = Rounds(few=lambda: mounted(bench, paths[10_000], command) / 10_000,
                        many=lambda: mounted(bench, paths[100_000], command) / 100_000)
        show("open.%s_100000.ratio_10000" % name, rounds.cost("many", "few"), "ratio")
        show("open.%s_100000.us_per_entry" % name, 1e6 * rounds.seconds("many"), "us")


def run_million(bench):
    path = bench.path("million.safetensors")
    header = make_data.safetensors(path, equal(1_000_000, 1_000_000 << 4), bench.zeros)
    start = time.perf_counter()
    with bench.ckptfs(path) as mount:
        show("open.million_tensors.s", time.perf_counter() - start, "s")
        show("open.million_tensors.header.MB", header / 1e6, "MB")
        show("open.million_tensors.rss_peak.ratio_header", mount.peak_mb() * 1e6 / header, "ratio")


def run_open(bench):
    run_size(bench, "safetensors", make_data.safetensors, 200, 200 << 10, 1 << 40)
    run_size(bench, "oam", make_data.oam, 2000, 2000 << 10, 200 << 30)
    run_count(bench)
    run_million(bench)
