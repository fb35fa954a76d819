# SPDX-License-Identifier: Apache-2.0
"""What the tests of ckpt share: where things are, running it, counting faults."""
import os
import resource
import subprocess
import sys

SRCDIR = os.environ.get("srcdir", ".")
CKPT = os.path.join(os.environ.get("builddir", "."), "ckpt")
GOLDEN = os.path.join(SRCDIR, "tests", "golden")

sys.path.insert(0, os.path.join(SRCDIR, "tests"))


def ckpt(*arguments):
    """(exit code, stdout as bytes, stderr as text)"""
    done = subprocess.run([CKPT, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace")


def without_room(*words, room=5000):
    """Where no file may grow beyond `room` bytes, as on a full disk: (exit code, stderr)."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    done = subprocess.run([CKPT, *words], capture_output=True, text=True, check=False, preexec_fn=limit)
    return done.returncode, done.stderr


class Faults:
    """Counts checks and prints those that fail."""

    def __init__(self):
        self.checks = self.faults = 0

    def check(self, holds, *message):
        self.checks += 1
        if not holds:
            self.faults += 1
            print(*message)

    def finish(self, least):
        """Exit code; a run that checked less than `least` things has lost its data."""
        print("%d checks, %d faults" % (self.checks, self.faults))
        return 1 if self.faults or self.checks < least else 0
