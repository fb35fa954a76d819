# SPDX-License-Identifier: Apache-2.0
"""Mounts by programs that are not trusted to work: all that touches one is a process of its own under a time limit."""
import os
import subprocess
import tempfile

from mounts import Mount, warm

LIMIT = float(os.environ.get("COMPARE_LIMIT", "60"))
TIMED_OUT = 124  # timeout(1) says
UNMOUNT = ["sh", "-c", 'fusermount3 -u "$0" 2>/dev/null || fusermount3 -uz "$0"']


class Wrong(Exception):
    """Why there is no figure."""


def failed(what, code, said):
    if code == TIMED_OUT:
        return Wrong("%s takes more than %g s" % (what, LIMIT))
    return Wrong("%s: exit code %d: %s" % (what, code, (said.strip().splitlines() or ["says nothing"])[-1]))


def run(*words, **options):
    """What it printed."""
    done = subprocess.run(["timeout", str(LIMIT), *words], check=False, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"}, **options)
    if done.returncode != 0:
        raise failed(os.path.basename(words[0]), done.returncode, done.stderr)
    return done.stdout


class ToolMount(Mount):
    """By a program that may fail, hang or say that all is well when it is not."""

    def __init__(self, tool, image):
        super().__init__(["timeout", str(LIMIT), *tool.mount, image], UNMOUNT)
        self.under = tool.under

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="bench-mount-")
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        with tempfile.TemporaryFile("w+", errors="replace") as said:  # a pipe would last as long as the daemon
            code = subprocess.run([*self.words, self.folder], check=False, stdout=said, stderr=said).returncode
            said.seek(0)
            if code != 0:
                raise failed("mounting", code, said.read())

    def __exit__(self, *_):
        subprocess.run([*self.unmount, self.folder], check=False, stderr=subprocess.DEVNULL)
        try:
            os.rmdir(self.folder)
        except OSError as error:
            raise Wrong("unmounting: %s" % error) from None

    def at(self, *names):
        return super().at(self.under, *names)


class Folder:
    """Stands for a mount where there is none."""

    def __init__(self, tensors):
        self.tensors = tensors

    def warm(self):
        for name in self.tensors.names:
            warm(self.tensors.at(name))
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def at(self, *names):
        return os.path.join(self.tensors.path, *names)
