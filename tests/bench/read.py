# SPDX-License-Identifier: Apache-2.0
"""Reading a tensor from its first to its last byte, and all of many."""
import os
import random
import subprocess
import time

import make_data
from figures import Rounds, show
from mounts import cpu_seconds, warm

ALL_COUNT = 300


def of_mount(bench, mount, name, *first):
    """Seconds of reading one file of a fresh mount, after the first byte of others."""
    with mount.warm():
        for other in first:
            bench.reader("byte", mount.at(other))
        return bench.reader("seq", mount.at(name))[0]


def of_mount_again(bench, mount, name):
    """Seconds of the second reading."""
    with mount.warm():
        bench.reader("seq", mount.at(name))
        return bench.reader("seq", mount.at(name))[0]


def of_file(bench, path):
    warm(path)
    return bench.reader("seq", path)[0]


def run_plain(bench):
    rounds = Rounds(
        oam=lambda: of_mount(bench, bench.ckptfs(bench.oam), bench.BIG),
        known=lambda: of_mount(bench, bench.ckptfs(bench.oam), bench.BIG, bench.SMALL),
        safetensors=lambda: of_mount(bench, bench.ckptfs(bench.safetensors), bench.BIG),
        again=lambda: of_mount_again(bench, bench.ckptfs(bench.oam), bench.BIG),
        ceiling_again=lambda: of_mount_again(bench, bench.ceiling(bench.npy), "data"),
        ceiling=lambda: of_mount(bench, bench.ceiling(bench.npy), "data"),
        raw=lambda: of_file(bench, bench.npy))
    show("read.ceiling.GBps", os.path.getsize(bench.npy) / rounds.seconds("ceiling") / 1e9, "GB/s")
    show("read.first.ratio_ceiling", rounds.speed("oam", "ceiling"), "ratio")
    show("read.first.known.ratio_ceiling", rounds.speed("known", "ceiling"), "ratio")
    show("read.first.ratio_raw", rounds.speed("oam", "raw"), "ratio")
    show("read.first.known.ratio_raw", rounds.speed("known", "raw"), "ratio")
    show("read.safetensors.ratio_ceiling", rounds.speed("safetensors", "ceiling"), "ratio")
    show("read.again.ratio_raw", rounds.speed("again", "raw"), "ratio")
    show("read.again.ratio_ceiling", rounds.speed("again", "ceiling_again"), "ratio")


# ---- an envelope ---------------------------------------------------------------------------------------------------

def ceiling_cpu(bench):
    """CPU seconds of reader and daemon together."""
    with bench.ceiling(bench.npy).warm() as mount:
        (_, reader), daemon = cpu_seconds(mount, lambda: bench.reader("seq", mount.at("data")))
        return reader + daemon


def first_byte(bench):
    """Of the slowest of three tensors, at the start, the middle and the end of the payload: with what lies before them
    (the index, which is verified too) they share no chunk but the first one's."""
    with bench.ckptfs(bench.envelope).warm() as mount:
        return bench.reader("byte", *(mount.at(name) for name in (bench.LAST, bench.BIG, bench.SMALL)))[0]


def run_envelope(bench):
    rounds = Rounds(
        envelope=lambda: of_mount(bench, bench.ckptfs(bench.envelope), bench.BIG),
        ceiling=lambda: ceiling_cpu(bench),
        sha256=lambda: bench.serial("sha256", bench.npy)[1],
        byte=lambda: first_byte(bench))
    # The ideal: all cores are busy from start to end, with nothing but the CPU seconds (user and system, of the reader
    # and of the daemon) that the ceiling spends on the same bytes and those that their SHA-256 takes one thread:
    # seconds = (cpu(ceiling) + cpu(sha256)) / cores, and the figure is that over the seconds that the reading took.
    cores = len(os.sched_getaffinity(0))
    show("read.envelope.first.ratio_sha256",
         rounds.median(lambda row: (row["ceiling"] + row["sha256"]) / cores / row["envelope"]), "ratio")
    show("read.envelope.first_byte.ms", 1e3 * rounds.seconds("byte"), "ms")


# ---- many tensors --------------------------------------------------------------------------------------------------

def cat(folder):
    files = sorted(entry.path for entry in os.scandir(folder))
    start = time.perf_counter()
    subprocess.run(["cat", *files], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def run_all(bench):
    """Sizes from 1 KiB to 8 MiB, as many between 1 and 2 KiB as between 4 and 8 MiB."""
    draw = random.Random(1)
    sizes = [int(2 ** draw.uniform(10, 23)) for _ in range(ALL_COUNT)]
    plain = bench.path("all")
    make_data.npy_folder(plain, sizes, bench.noise)
    oam = bench.made("all.oam", make_data.oam, sizes, bench.noise)

    def mounted():
        with bench.ckptfs(oam).warm() as mount:
            return cat(mount.at("tensors"))

    def raw():
        cat(plain)
        return cat(plain)
    rounds = Rounds(mounted=mounted, raw=raw)
    show("read.all.ratio_raw", rounds.speed("mounted", "raw"), "ratio")


def run_read(bench):
    run_plain(bench)
    run_envelope(bench)
    run_all(bench)
