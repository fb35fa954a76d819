#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client that reads in Python, in a process of its own so that it can be ended; prints the seconds that it took:

    rows FILE.npy COUNT                   COUNT random rows of 4 to 16 KiB of np.load(mmap_mode="r")
    h5 make FILE.h5 FOLDER                a contiguous dataset for each .npy file
    h5 list|list_l|all FILE.h5            the names; names, types and shapes; everything
    h5 seq|again FILE.h5 NAME             the whole of one, the first or the second time
    h5 random FILE.h5 NAME THREADS BLOCK COUNT
    h5 rows FILE.h5 NAME COUNT
    h5 sizes FILE.h5                      no seconds: the names and sizes of the .npy files
    h5 sums FILE.h5 NAME...               no seconds: what sha256sum prints for them
"""
import hashlib
import os
import random
import sys
import threading
import time

import numpy as np

import make_data

PAGE, PIECE = 4096, 1 << 20
ROW_MIN, ROW_MAX = 4 << 10, 16 << 10


def places(seed, count, size, block):
    """The same in every run."""
    draw = random.Random(seed)
    last = max(size - block, 0) // PAGE
    return [draw.randint(0, last) * PAGE for _ in range(count)]


def read_rows(array, count):
    draw, buffer = random.Random(1), np.ones(ROW_MAX, "u1")
    for _ in range(count):
        size = draw.randint(ROW_MIN, ROW_MAX)
        at = draw.randint(0, len(array) - size)
        buffer[:size] = array[at:at + size]


def rows(path, count):
    read_rows(np.load(path, mmap_mode="r"), int(count))


# ---- HDF5 ----------------------------------------------------------------------------------------------------------

def h5_make(file, folder):
    for name in sorted(os.listdir(folder)):
        file.create_dataset(name, data=np.load(os.path.join(folder, name)))


def h5_seq(file, name, buffer=np.ones(PIECE, "u1")):
    """In pieces into a buffer that is there: a fresh array would cost as much again for its pages."""
    dataset = file[name]
    for at in range(0, len(dataset), PIECE):
        piece = min(PIECE, len(dataset) - at)
        dataset.read_direct(buffer, np.s_[at:at + piece], np.s_[:piece])


def h5_random(file, name, threads, block, count):
    dataset, block = file[name], int(block)

    def work(seed):
        buffer = np.ones(block, "u1")
        for at in places(seed, int(count), len(dataset), block):
            piece = min(block, len(dataset) - at)
            dataset.read_direct(buffer, np.s_[at:at + piece], np.s_[:piece])
    crew = [threading.Thread(target=work, args=(seed,)) for seed in range(int(threads))]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()


def h5_sizes(file):
    for name, dataset in file.items():
        print(name, len(make_data.npy_header(len(dataset))) + len(dataset))


def h5_sums(file, *names):
    for name in names:
        data = file[name][:]
        print("%s  %s" % (hashlib.sha256(make_data.npy_header(len(data)) + data.tobytes()).hexdigest(), name))


H5 = {"make": h5_make, "seq": h5_seq, "random": h5_random, "sizes": h5_sizes, "sums": h5_sums,
      "list": lambda file: list(file),
      "list_l": lambda file: [(name, dataset.dtype, dataset.shape) for name, dataset in file.items()],
      "all": lambda file: [h5_seq(file, name) for name in file],
      "rows": lambda file, name, count: read_rows(file[name], int(count))}


def h5(mode, path, *rest):
    """Seconds, with the opening of the file but not with the loading of the library."""
    import h5py
    if mode == "again":
        with h5py.File(path, "r") as file:
            h5_seq(file, *rest)
            start = time.perf_counter()
            h5_seq(file, *rest)
            return time.perf_counter() - start
    start = time.perf_counter()
    with h5py.File(path, "w" if mode == "make" else "r") as file:
        H5[mode](file, *rest)
    return time.perf_counter() - start


def main():
    what, *rest = sys.argv[1:]
    if what == "h5":
        seconds = h5(*rest)
    else:
        start = time.perf_counter()
        rows(*rest)
        seconds = time.perf_counter() - start
    if rest[0] not in ("sizes", "sums"):
        print("%.9f" % seconds)


if __name__ == "__main__":
    main()
