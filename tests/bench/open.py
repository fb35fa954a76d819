#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What opening costs: open.py BUILDDIR [ROUNDS]. One line a figure: NAME VALUE UNIT.

Ratios are between two mounts of one round, taken in turn; the median of all rounds is printed. The files are sparse
and made here.
"""
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

BUILDDIR = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 7
FNV_START, FNV_PRIME, WORD = 0xCBF29CE484222325, 0x100000001B3, 2 ** 64


def fnv1a(data, value=FNV_START):
    for byte in data:
        value = (value ^ byte) * FNV_PRIME % WORD
    return value


def write_sparse(path, head, size):
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(size)


def safetensors(path, count, total):
    """count tensors of equal size (U8) in total bytes of zeros."""
    each, rows = total // count, {}
    for i in range(count):
        rows["layers.%07d.weight" % i] = {"dtype": "U8", "shape": [each], "data_offsets": [i * each, (i + 1) * each]}
    text = json.dumps(rows, separators=(",", ":")).encode()
    write_sparse(path, struct.pack("<Q", len(text)) + text, 8 + len(text) + each * count)
    return len(text)


def oam(path, count, total):
    """An .oam whose weights section holds count tensors of zeros; its checksum follows from the algebra: a zero byte
    only multiplies the hash by the prime."""
    each = total // count
    index = struct.pack("<II", count, 0)
    for i in range(count):
        index += struct.pack("<128sQQBBBB4x8Q", b"layers.%d.weight" % i, i * each, each, 5, 1, 0, 0, each, *[0] * 7)
    config = struct.pack("<32s6I3B49x", b"Bench", 1, 0, 0, 0, 256, 0, 0, 0, 0)
    progress = struct.pack("<B3xqQQffB3x32s32x", 0, 0, 0, 0, 0.0, 0.0, 1, b"loss")
    weights_size = len(index) + each * count
    checksum = fnv1a(index) * pow(FNV_PRIME, each * count, WORD) % WORD
    at = [4096, 4096 + len(config)]
    at.append((at[1] + weights_size + 4095) // 4096 * 4096)
    table = b"".join(struct.pack("<IB3xIQQQQ20x", kind, 0, 0, offset, size, 0, digest) for kind, offset, size, digest in (
        (1, at[0], len(config), fnv1a(config)), (2, at[1], weights_size, checksum),
        (5, at[2], len(progress), fnv1a(progress))))
    total_size = at[2] + len(progress)
    head = struct.pack("<4sIIIQQ32x", b"OAM\0", 3, 3, 0, total_size, 0)
    head = head[:24] + struct.pack("<Q", fnv1a(head + table)) + head[32:]
    write_sparse(path, (head + table).ljust(4096, b"\0") + config + index, total_size)
    with open(path, "r+b") as file:
        file.seek(at[2])
        file.write(progress)


class Mount:
    def __init__(self, path):
        self.path, self.folder = path, tempfile.mkdtemp()

    def __enter__(self):
        subprocess.run([BUILDDIR + "/ckptfs", self.path, self.folder], check=True)
        return self.folder

    def __exit__(self, *_):
        subprocess.run([BUILDDIR + "/ckptfs", "-u", self.folder], check=True)
        os.rmdir(self.folder)


def daemon_of(path):
    """PID of the daemon that serves path (its command line names it)."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"ckptfs") and os.fsencode(path) in words:
            return pid
    raise RuntimeError("no daemon serves " + path)


def peak_mb(pid):
    with open("/proc/%s/status" % pid) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def mount_ls(path):
    start = time.perf_counter()
    with Mount(path) as folder:
        subprocess.run(["ls", folder + "/tensors"], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def listing(path, command):
    with Mount(path) as folder:
        start = time.perf_counter()
        subprocess.run(command + [folder + "/tensors"], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def show(name, value, unit):
    print("%s %.4g %s" % (name, value, unit), flush=True)


def ratio(name, big, small, measure):
    rounds = [(measure(big), measure(small)) for _ in range(ROUNDS)]
    show(name, statistics.median(a / b for a, b in rounds), "ratio")
    return statistics.median(a for a, _ in rounds)


def main():
    with tempfile.TemporaryDirectory() as work:
        def at(name):
            return os.path.join(work, name)
        safetensors(at("small.safetensors"), 200, 200 << 10)
        safetensors(at("huge.safetensors"), 200, 1 << 40)
        show("open.safetensors_1TB.ms", 1e3 * ratio("open.safetensors_1TB.ratio_small", at("huge.safetensors"),
                                                    at("small.safetensors"), mount_ls), "ms")
        oam(at("small.oam"), 2000, 2000 << 10)
        oam(at("huge.oam"), 2000, 200 << 30)
        show("open.oam_200GB.ms", 1e3 * ratio("open.oam_200GB.ratio_small", at("huge.oam"), at("small.oam"), mount_ls), "ms")
        for count in (10_000, 100_000):
            safetensors(at("many%d.safetensors" % count), count, count << 10)
        for name, command in (("ls_f", ["ls", "-f"]), ("ls_l", ["ls", "-l"]), ("find", ["find"])):
            few, many = at("many10000.safetensors"), at("many100000.safetensors")
            rounds = [(listing(many, command) / 10, listing(few, command)) for _ in range(ROUNDS)]
            show("many.%s.per_entry.ratio_10000" % name, statistics.median(a / b for a, b in rounds), "ratio")
            show("many.%s.us_per_entry" % name, statistics.median(a for a, _ in rounds) / 10_000 * 1e6, "us")
        header = safetensors(at("million.safetensors"), 1_000_000, 1_000_000 << 4)
        start = time.perf_counter()
        with Mount(at("million.safetensors")):
            show("open.million_tensors.s", time.perf_counter() - start, "s")
            peak = peak_mb(daemon_of(at("million.safetensors")))
            show("open.million_tensors.header.MB", header / 1e6, "MB")
            show("open.million_tensors.rss_peak.ratio_header", peak * 2 ** 20 / header, "ratio")


if __name__ == "__main__":
    main()
