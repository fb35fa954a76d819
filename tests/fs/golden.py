#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every valid golden file mounts, and its mount is, byte by byte, the tree that expected_tree.py says."""
import contextlib
import io
import json
import os
import stat
import sys

sys.dont_write_bytecode = True
import lib
import expected_tree


def check_stat(file, mount):
    """What expected_tree.py does not look at: modes, times, inode numbers, link counts."""
    source, seen = os.stat(file), set()
    for base, dirs, names in os.walk(mount):
        info = os.stat(base)
        lib.want(info.st_nlink == 2 + len(dirs), "%s: %s has %d links", file, base, info.st_nlink)
        lib.want(stat.S_IMODE(info.st_mode) == 0o555, "%s: %s has mode %o", file, base, info.st_mode)
        for name in names:
            info = os.lstat(os.path.join(base, name))
            lib.want(stat.S_ISREG(info.st_mode) and stat.S_IMODE(info.st_mode) == 0o444, "%s: %s has mode %o",
                     file, name, info.st_mode)
            lib.want(info.st_nlink == 1 and info.st_blksize == 128 * 1024, "%s: %s: links %d, blksize %d", file,
                     name, info.st_nlink, info.st_blksize)
            lib.want(info.st_ino not in seen, "%s: %s shares its inode number", file, name)
            seen.add(info.st_ino)
            if not file.endswith(".index.json"):
                lib.want(info.st_mtime_ns == source.st_mtime_ns, "%s: %s has another time", file, name)


def check(file):
    report = io.StringIO()
    with lib.mounted(file) as mount:
        with contextlib.redirect_stdout(report):
            expected_tree.check(file, mount)
        check_stat(file, mount)
    lines = report.getvalue().strip().splitlines()
    lib.want(lines[-1].endswith(" 0 faults"), "%s: %s", file, "\n  ".join(lines[:5] + lines[-1:]))


with open(os.path.join(lib.GOLDEN, "manifest.json")) as stream:
    cases = [case for case in json.load(stream) if case["valid"]]
for case in cases:
    try:
        check(os.path.join(lib.GOLDEN, case["file"]))
    except RuntimeError as error:
        if not case.get("ambiguous"):
            lib.fault("%s", error)
print("%d files" % len(cases))
lib.want(len(cases) > 100, "only %d files", len(cases))
lib.finish()
