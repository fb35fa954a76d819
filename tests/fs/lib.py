# SPDX-License-Identifier: Apache-2.0
"""For the tests here: mounts that are gone at the end, a scratch folder, a count of faults."""
import atexit
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.realpath(os.environ.get("srcdir", "."))
CKPTFS = os.path.join(os.path.realpath(os.environ.get("builddir", ".")), "ckptfs")
GOLDEN = os.path.join(TOP, "tests", "golden")
sys.path.insert(0, os.path.join(TOP, "tests"))

try:
    os.close(os.open("/dev/fuse", os.O_RDWR))
except OSError as error:
    print("no /dev/fuse to open: %s" % error.strerror)
    sys.exit(77)

SCRATCH = os.path.realpath(tempfile.mkdtemp())
MOUNT = os.path.join(SCRATCH, "mnt")
os.mkdir(MOUNT)
faults = []
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):  # a daemon in the background has nowhere to complain
    os.environ[name] = os.environ.get(name, "") + ":log_path=" + os.path.join(SCRATCH, "sanitizer")


@atexit.register
def cleanup():
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            where = line.split()[1]
            if where.startswith(SCRATCH):
                subprocess.call(["umount", "-l", where])
    shutil.rmtree(SCRATCH, ignore_errors=True)


def fault(text, *values):
    faults.append(text % values if values else text)
    print("FAULT: " + faults[-1])


def want(condition, text, *values):
    if not condition:
        fault(text, *values)
    return condition


def finish():
    for name in os.listdir(SCRATCH):
        if name.startswith("sanitizer."):
            with open(os.path.join(SCRATCH, name), errors="replace") as stream:
                fault("%s:\n%s", name, stream.read())
    print("%d faults" % len(faults))
    sys.exit(1 if faults else 0)


def run(source, *options):
    """(exit code, stderr) of mounting source at MOUNT."""
    words = ["-o", ",".join(options)] if options else []
    done = subprocess.run([CKPTFS, *words, source, MOUNT], capture_output=True, text=True, errors="replace")
    return done.returncode, done.stderr.strip()


def is_mounted():
    return os.path.ismount(MOUNT)


@contextlib.contextmanager
def mounted(source, *options):
    code, message = run(source, *options)
    if code:
        raise RuntimeError("%s does not mount: exit code %d: %s" % (source, code, message))
    try:
        yield MOUNT
    finally:
        if subprocess.call(["umount", MOUNT]) != 0:
            subprocess.call(["umount", "-l", MOUNT])
            fault("%s: stays busy", source)


def path(name):
    """A file in the scratch folder."""
    return os.path.join(SCRATCH, name)


def copy(source, name):
    return shutil.copyfile(source, path(name))


def read(name):
    """The bytes of a file, or the errno of the failure."""
    try:
        with open(name, "rb") as stream:
            return stream.read()
    except OSError as error:
        return error.errno
