# SPDX-License-Identifier: Apache-2.0
"""Mounts to measure, what their daemons cost, and the files' place in the page cache."""
import os
import subprocess
import tempfile
import time


class Mount:
    """A mount at a folder of its own. The words are a program and its arguments, to which the folder is added."""

    def __init__(self, words, unmount, **environment):
        self.words, self.unmount, self.environment = words, unmount, {**os.environ, **environment}

    def warm(self):
        """Right before a measurement: virtual machines take memory back that was idle for seconds."""
        warm(self.words[-1])
        return self

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="bench-mount-")
        subprocess.run([*self.words, self.folder], check=True, env=self.environment)
        return self

    def __exit__(self, *_):
        subprocess.run([*self.unmount, self.folder], check=True)
        os.rmdir(self.folder)

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def pid(self):
        """The daemon's: its command line names the folder."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if os.fsencode(self.folder) in words and int(pid) != os.getpid():
                return int(pid)
        raise RuntimeError("no daemon serves " + self.folder)

    def cpu_clock(self):
        """The clock of the CPU time of all the daemon's threads (MAKE_PROCESS_CPUCLOCK of the kernel's)."""
        return ~self.pid() << 3 | 2

    def peak_mb(self):
        with open("/proc/%d/status" % self.pid()) as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024 / 1e6


def cpu_seconds(mount, work):
    """(what work() returned, CPU seconds of the daemon in it)."""
    clock = mount.cpu_clock()
    start = time.clock_gettime(clock)
    result = work()
    return result, time.clock_gettime(clock) - start


def warm(path):
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(1 << 20)
        while file.readinto(buffer):
            pass
