# SPDX-License-Identifier: Apache-2.0
"""Listing very many tensors. Ratios are times over times: less is better."""
import os
import subprocess
import time

import make_data
from figures import Rounds, show

COUNT = 20_000
SIZES = [1024 + 16 * (number % 64) for number in range(COUNT)]


def listing(command, folder):
    start = time.perf_counter()
    subprocess.run([*command, folder], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})
    return time.perf_counter() - start


def mount_and_list(bench, source):
    start = time.perf_counter()
    with bench.ckptfs(source) as mount:
        subprocess.run(["ls", mount.at("tensors")], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def plain_listing(command, folder):
    listing(command, folder)  # into the kernel's memory
    return listing(command, folder)


def mounted(bench, source, command, times=1):
    """Seconds of the last of some listings of a fresh mount."""
    with bench.ckptfs(source) as mount:
        return [listing(command, mount.at("tensors")) for _ in range(times)][-1]


def run_many(bench):
    oam = bench.made("many.oam", make_data.oam, SIZES, bench.zeros)
    safetensors = bench.made("many.safetensors", make_data.safetensors, SIZES, bench.zeros)
    plain = bench.path("many")
    make_data.npy_folder(plain, SIZES, bench.zeros)
    rounds = Rounds(oam=lambda: mount_and_list(bench, oam), safetensors=lambda: mount_and_list(bench, safetensors))
    show("mount_ls.ms", 1e3 * rounds.seconds("oam"), "ms")
    show("mount_ls.safetensors.ms", 1e3 * rounds.seconds("safetensors"), "ms")
    for name, command in ("ls_l", ["ls", "-l"]), ("find", ["find"]):
        rounds = Rounds(mounted=lambda: mounted(bench, oam, command), again=lambda: mounted(bench, oam, command, 2),
                        raw=lambda: plain_listing(command, plain))
        show("many.%s.us_per_entry" % name, 1e6 * rounds.seconds("mounted") / COUNT, "us")
        show("many.%s.ratio_raw" % name, rounds.cost("mounted", "raw"), "ratio")
        show("many.%s.again.ratio_raw" % name, rounds.cost("again", "raw"), "ratio")
