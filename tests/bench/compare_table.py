# SPDX-License-Identifier: Apache-2.0
"""The table in Markdown, and what it was measured on."""
import os
import platform
import shlex
import subprocess
import sys

HEADS = {"mount_ls": "mount and `ls`, ms", "ls_l": "`ls -l`, ms", "first": "first read", "again": "again", "all": "all",
         "random64k": "random", "rows": "rows of a mapping"}


def cell(value):
    """Two digits that say something; "-" for why there is none."""
    return "-" if isinstance(value, str) else "%.2g" % value if value < 100 else "%.0f" % value


def show_table(chosen, figures, whats):
    heads = ["", "verifies", "knows tensors", *(HEADS[what] for what in whats)]
    rows = [("plain files", "no", "no", "plain"),
            *((tool.label, tool.verifies, tool.tensors, tool.name) for tool in chosen)]
    print("\n| %s |\n|%s" % (" | ".join(heads), "---|" * len(heads)))
    for *texts, name in rows:
        print("| %s |" % " | ".join([*texts, *(cell(figures[name, what]) for what in whats)]))
    reasons = dict.fromkeys((name, value) for (name, _), value in figures.items() if isinstance(value, str))
    for reason in reasons:
        print("\n%s, -: %s" % reason, end="")


def version(package):
    words = ["dpkg-query", "-W", "-f", "${Package} ${Version}", package]
    try:
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def processor():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def show_machine(chosen, sizes):
    packages = dict.fromkeys(tool.package for tool in chosen if tool.package)
    print("\n\nmachine: %d cores, %s, Linux %s" % (len(os.sched_getaffinity(0)), processor(), platform.release()))
    print("versions: " + ", ".join(filter(None, map(version, packages))))
    print("sizes: " + sizes)
    print("command: " + shlex.join(sys.argv))
