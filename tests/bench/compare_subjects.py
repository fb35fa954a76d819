# SPDX-License-Identifier: Apache-2.0
"""Who is measured: each has a method for each figure, which returns seconds."""
import math
import os
import shutil
import subprocess
import time

from compare_mounts import Folder, ToolMount, Wrong, run
from mounts import warm

PYTHON = os.environ.get("COMPARE_PYTHON", "/usr/bin/python3")
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare_numpy.py")
BIG = 1  # number of the large tensor
THREADS, BLOCK, READS, ROWS = 4, 64 << 10, 1024, 2000


def seconds(*words):
    """What a client measured."""
    return float(run(*words).split()[0])


def client(*words):
    return run(PYTHON, "-B", CLIENT, *map(str, words))


class Turn:
    """A subject's part in a figure. Once failed, it sits out the rounds."""

    def __init__(self, work):
        self.work, self.reason = work, None

    def __call__(self):
        try:
            return math.nan if self.reason else self.work()
        except Wrong as wrong:
            self.reason = str(wrong)
            return math.nan


class Subject:
    """Files to read: `mount()` is a context manager that says where they are."""

    def __init__(self, build, tensors):
        self.reader, self.tensors = os.path.join(build, "tests/bench/reader"), tensors
        self.big = tensors.names[BIG]

    def mount_ls(self):
        mount = self.mount().warm()
        start = time.perf_counter()
        with mount:
            count = len(run("ls", mount.at()).split())
            took = time.perf_counter() - start
        if count != len(self.tensors.names):
            raise Wrong("ls shows %d of %d files" % (count, len(self.tensors.names)))
        return took

    def ls_l(self):
        with self.mount().warm() as mount:
            start = time.perf_counter()
            run("ls", "-l", mount.at())
            return time.perf_counter() - start

    def first(self):
        with self.mount().warm() as mount:
            return seconds(self.reader, "seq", mount.at(self.big))

    def again(self):
        with self.mount().warm() as mount:
            run(self.reader, "seq", mount.at(self.big))
            return seconds(self.reader, "seq", mount.at(self.big))

    def random64k(self):
        with self.mount().warm() as mount:
            self.settle(mount)
            return seconds(self.reader, "random", mount.at(self.big), str(THREADS), str(BLOCK), str(READS))

    def rows(self):
        with self.mount().warm() as mount:
            self.settle(mount)
            return float(client("rows", mount.at(self.big), ROWS))

    def all(self):
        with self.mount().warm() as mount:
            start = time.perf_counter()
            run("sh", "-c", 'exec cat -- "$@" >/dev/null', "cat", *map(mount.at, self.tensors.names))
            return time.perf_counter() - start

    # ---- what the bytes are ----------------------------------------------------------------------------------------

    def sizes(self):
        with self.mount() as mount:
            return sorted(run("find", mount.at(), "-type", "f", "-printf", "%f %s\n").splitlines())

    def sums(self, names):
        with self.mount() as mount:
            return run("sha256sum", *names, cwd=mount.at()).splitlines()


class Plain(Subject):
    def mount(self):
        return Folder(self.tensors)

    def settle(self, mount):
        pass


class Mounted(Subject):
    def __init__(self, build, tensors, tool, image):
        super().__init__(build, tensors)
        self.tool, self.image = tool, image

    def make(self):
        for program in filter(lambda program: not shutil.which(program), self.tool.needs):
            raise Wrong("%s is not installed" % program)
        try:
            self.tool.image(self.tensors, self.image)
        except subprocess.CalledProcessError as failed:
            raise Wrong("%s: %s" % (failed.cmd[0], failed.stderr.strip())) from None

    def mount(self):
        return ToolMount(self.tool, self.image)

    def settle(self, mount):
        """What is verified or unpacked at the first read is then done, and nothing is in the page cache of the mount;
        the image's is still in that of the disk."""
        run(self.reader, "stream", mount.at(self.big))
        mount.warm()


class HDF5(Mounted):
    """The same by a library, without a mount."""

    def make(self):
        client("h5", "make", self.image, self.tensors.path)

    def seconds(self, what, *rest):
        warm(self.image)
        return float(client("h5", what, self.image, *rest))

    def mount_ls(self):
        return self.seconds("list")

    def ls_l(self):
        return self.seconds("list_l")

    def first(self):
        return self.seconds("seq", self.big)

    def again(self):
        return self.seconds("again", self.big)

    def random64k(self):
        return self.seconds("random", self.big, THREADS, BLOCK, READS)

    def rows(self):
        return self.seconds("rows", self.big, ROWS)

    def all(self):
        return self.seconds("all")

    def sizes(self):
        return client("h5", "sizes", self.image).splitlines()

    def sums(self, names):
        return client("h5", "sums", self.image, *names).splitlines()


def prepare(subject, sample):
    """Makes the image; there are no figures of other files than the plain ones, nor of other bytes."""
    subject.make()
    os.sync()  # writing it out is not to fall into a measurement
    plain, names = Plain(os.path.dirname(subject.reader), subject.tensors), subject.tensors.names
    names = [names[0], names[len(names) // 2], names[-1]] if sample else names
    if subject.sizes() != plain.sizes():
        raise Wrong("it has other files than the plain folder")
    if subject.sums(names) != plain.sums(names):
        raise Wrong("it gives other bytes than the plain files")
