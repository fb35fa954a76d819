#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures ckptfs beside other ways to have the same tensors as files: compare.py BUILDDIR [TOOL...].

One figure a line, "compare.TOOL.WHAT VALUE UNIT", then a table in Markdown. A tool that is not installed, fails, is too
slow or gives other bytes than the plain files is reported ("not measured: ...") and the rest goes on. Variables:
  COMPARE_MB       MiB of the one large tensor (512)
  COMPARE_ALL      tensors of 4 KiB to 8 MiB that are all read (300)
  COMPARE_MANY     tensors of 1 to 2 KiB that are listed (20000)
  COMPARE_LIMIT    seconds after which a tool is too slow for a figure (60)
  COMPARE_PYTHON   the Python that has NumPy and h5py (/usr/bin/python3)
  BENCH_ROUNDS     rounds, of which medians are taken (5)
  BENCH_DIR        where the data is made (the build folder; up to 12 times COMPARE_MB, removed afterwards)

Images are in the page cache and not compressed, and every figure is of a fresh mount: verification is within. Figures:
  mount_ls   mounting and `ls` of COMPARE_MANY tensors
  ls_l       `ls -l` of them, mounted
  first      reading the large tensor from start to end
  again      the same for the second time
  all        `cat` of COMPARE_ALL tensors
  random64k  random reads of 64 KiB by 4 threads of the large tensor, which was read once and is no longer cached
  rows       2000 rows of np.load(mmap_mode="r") of the same
A ratio is a speed over that of the plain files in the page cache, in the same round: more is better. HDF5 is read by
h5py in its process, by the same pieces; starting Python is not counted.
"""
import os
import random
import sys
import tempfile

import compare_table
from compare_mounts import LIMIT, Wrong
from compare_subjects import HDF5, Mounted, Plain, Turn, prepare
from compare_tools import Tensors, tools
from figures import Rounds, show

MB = int(os.environ.get("COMPARE_MB", "512"))
ALL = int(os.environ.get("COMPARE_ALL", "300"))
MANY = int(os.environ.get("COMPARE_MANY", "20000"))
SETS = {"many": ("mount_ls", "ls_l"), "big": ("first", "again", "random64k", "rows"), "all": ("all",)}


def sizes(name):
    if name == "big":
        return [16 << 10, MB << 20, 16 << 10]
    if name == "many":
        return [1024 + 16 * (number % 64) for number in range(MANY)]
    draw = random.Random(1)
    return [int(2 ** draw.uniform(12, 23)) for _ in range(ALL)]


def note(figures, name, what, reason):
    print("compare.%s.%s not measured: %s" % (name, what, reason), flush=True)
    figures[name, what] = str(reason)


def measure(figures, subjects, what):
    """All subjects take turns; one that failed sits out."""
    turns = {name: Turn(getattr(subject, what)) for name, subject in subjects.items()}
    rounds = Rounds(**turns)
    if turns["plain"].reason:
        sys.exit("plain files: " + turns["plain"].reason)
    for name, turn in turns.items():
        if turn.reason:
            note(figures, name, what, turn.reason)
        elif what in SETS["many"]:
            figures[name, what] = 1e3 * rounds.seconds(name)
            show("compare.%s.%s.ms" % (name, what), figures[name, what], "ms")
        else:
            figures[name, what] = rounds.speed(name, "plain")
            show("compare.%s.%s.ratio_plain" % (name, what), figures[name, what], "ratio")
    if what not in SETS["many"]:
        show("compare.plain.%s.ms" % what, 1e3 * rounds.seconds("plain"), "ms")


def run_set(figures, build, work, name, chosen):
    """One kind of data: images of it, whether all give its bytes, then the figures."""
    tensors = Tensors(os.path.join(work, "plain"), sizes(name), os.path.join(build, "tests/bench/serial"))
    subjects = {"plain": Plain(build, tensors)}
    for tool in chosen:
        image = os.path.join(work, "image." + tool.name)
        subject = (HDF5 if tool.name == "h5py" else Mounted)(build, tensors, tool, image)
        try:
            prepare(subject, name == "many")
        except Wrong as wrong:
            for what in SETS[name]:
                note(figures, tool.name, what, wrong)
            continue
        subjects[tool.name] = subject
    for what in SETS[name]:
        measure(figures, subjects, what)


def main():
    names = [tool.name for tool in tools(".")]
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(names):
        sys.exit(__doc__ + "\nTools: " + " ".join(names))
    build, figures = os.path.abspath(sys.argv[1]), {}
    chosen = [tool for tool in tools(build) if tool.name in (sys.argv[2:] or names)]
    for name in SETS:
        with tempfile.TemporaryDirectory(prefix="compare-", dir=os.environ.get("BENCH_DIR", build)) as work:
            run_set(figures, build, os.path.abspath(work), name, chosen)
    compare_table.show_table(chosen, figures, [what for name in SETS for what in SETS[name]])
    compare_table.show_machine(chosen, "%d MiB, %d tensors, %d listed, limit %g s" % (MB, ALL, MANY, LIMIT))


if __name__ == "__main__":
    main()
