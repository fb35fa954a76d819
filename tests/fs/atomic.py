#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command that writes makes its target whole or leaves it as it was: while calls fail, when it is killed or
stopped at any of them, on a full disk, on a read-only one, beside another writer.

atomic.c is preloaded for it. Another writer is another row in writers(). CKPT_SEED repeats a run."""
import errno
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ.get("srcdir", "."), "tests", "cli"))
from cli import CKPT, GOLDEN, SRCDIR, Faults, ckpt

faults = Faults()
MOMENTS = 20  # of those that a writer has; all of them when it has fewer
IDENTITIES = ["--schema", "a", "--learner", "b", "--data", "c", "--seed", "d", "--updates", "1", "--invocations", "1"]
OLD = b"what stood there before"
READERS = {"info", "ls", "cat", "verify", "diff", "help"}


# ---- the writers ---------------------------------------------------------------------------------------------------

class Writer:
    """A command whose last words are its target and what follows it. folder: it makes a directory, where nothing or
    an empty one stood. pipe: a file that comes through standard input. ending: of the target's name."""

    def __init__(self, *words, after=(), folder=False, pipe=None, ending=""):
        self.words, self.after, self.folder, self.pipe, self.ending = words, after, folder, pipe, ending

    def command(self, target):
        return [CKPT, *self.words, target, *self.after]

    def old(self, target):
        """Makes what stands there before."""
        if self.folder:
            os.mkdir(target)
        else:
            with open(target, "wb") as stream:
                stream.write(OLD)

    def run(self, target, **fault):
        """(exit code, stderr), with atomic.c when a fault is wanted."""
        environment = dict(os.environ)
        if fault:
            environment.update({"FAULT_" + name.upper(): str(value) for name, value in fault.items()})
            environment["LD_PRELOAD"] = SHIM
            environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        with subprocess.Popen(["cat", self.pipe or "/dev/null"], stdout=subprocess.PIPE) as cat:
            done = subprocess.run(self.command(target), stdin=cat.stdout, capture_output=True, env=environment,
                                  check=False, timeout=120)
            cat.stdout.close()
        return done.returncode, done.stderr.decode("utf-8", "backslashreplace")


def writers(work):
    payload, sealed = os.path.join(work, "payload"), os.path.join(work, "sealed")
    with open(payload, "wb") as stream:
        stream.write(random.Random(1).randbytes(1 << 20))
    seal = ["seal", *IDENTITIES, "--chunk"]
    subprocess.run([CKPT, *seal, "4K", payload, sealed], check=True)
    oam = os.path.join(GOLDEN, "oam/valid/transformer_adamw.oam")
    weights = os.path.join(GOLDEN, "oam/valid/big_weights_1mb.oam")
    table = {
        "seal": Writer(*seal, "64K", payload),
        "seal, a pipe": Writer(*seal, "1K", "-", pipe=payload),
        "unseal": Writer("unseal", sealed),
        "pack": Writer("pack", os.path.join(GOLDEN, "oam/write/transformer_adamw/spec.json")),
        "quantize": Writer("quantize", "q8", oam),
        "convert": Writer("convert", weights, ending=".safetensors"),
        "convert, to an .oam": Writer("convert", weights, ending=".oam"),
        "extract": Writer("extract", oam, folder=True),
        "extract, leaving out": Writer("extract", "--keep-going", oam, folder=True,
                                       after=("checkpoint.json", "config.json", "progress.json", "tensors.json")),
    }
    offered = commands()
    for command in offered - READERS:
        faults.check(any(row.words[0] == command for row in table.values()), command, "has no row")
    return {name: row for name, row in table.items() if row.words[0] in offered}


def commands():
    lines = ckpt("help")[1].decode().split("\n\n")[1].splitlines()
    return {line.split()[0] for line in lines}


# ---- what stands there ---------------------------------------------------------------------------------------------

def snapshot(path):
    """The bytes of a file; {name: bytes} of what a directory holds; None."""
    if os.path.isdir(path):
        found = {}
        for base, folders, names in os.walk(path):
            found.update({os.path.relpath(os.path.join(base, name), path): None for name in folders})
            for name in names:
                with open(os.path.join(base, name), "rb") as stream:
                    found[os.path.relpath(os.path.join(base, name), path)] = stream.read()
        return found
    if not os.path.lexists(path):
        return None
    with open(path, "rb") as stream:
        return stream.read()


def left_over(folder):
    return [name for name in os.listdir(folder) if ".ckpt-" in name]


class Stage:
    """A fresh folder with a target for each run."""

    def __init__(self, name, writer, work):
        self.name, self.writer, self.work = name, writer, work
        target = self.fresh(False)
        log = os.path.join(work, "log")
        open(log, "w").close()
        code, err = writer.run(target, log=log)
        faults.check(code == 0 and err == "", name, "exit", code, err)
        self.new = snapshot(target)
        with open(log) as stream:
            self.calls = stream.read().split()
        faults.check(self.new and not left_over(self.folder), name, "does not work")

    def fresh(self, old=True):
        self.folder = tempfile.mkdtemp(dir=self.work)
        target = os.path.join(self.folder, "out" + self.writer.ending)
        if old:
            self.writer.old(target)
        self.before = snapshot(target)
        return target

    def moments(self, call, chance):
        last = self.calls.count(call) if call else len(self.calls)
        if last <= MOMENTS:
            return range(1, last + 1)
        ends = [1, 2, last - 2, last - 1, last]
        return sorted({*ends, *chance.sample(range(1, last + 1), MOMENTS - len(ends))})

    def check(self, holds, *message):
        faults.check(holds, self.name + ":", *message)

    def names(self, target, err):
        """The target, or what was to be in it."""
        return any(name in err for name in [target, *(self.new if self.writer.folder else [])])

    def untouched(self, target, *message):
        self.check(snapshot(target) == self.before, *message, "the target is not as it was")
        self.check(not left_over(self.folder), *message, "left", left_over(self.folder))

    def made(self, target, *message):
        self.check(snapshot(target) == self.new, *message, "the target is not the new one")
        self.check(not left_over(self.folder), *message, "left", left_over(self.folder))


# ---- calls that fail -----------------------------------------------------------------------------------------------

def failing_calls(stage, chance):
    for call, reasons in (("write", [errno.EIO, errno.EDQUOT, errno.ENOSPC]), ("sync", [errno.EIO, errno.ENOSPC]),
                          ("rename", [errno.EIO, errno.EACCES])):
        stage.check(call in stage.calls, "there is no", call)
        for at in stage.moments(call, chance):
            for on in ({}, {"on": 1}):
                reason, old = chance.choice(reasons), chance.random() < 0.7
                target = stage.fresh(old)
                code, err = stage.writer.run(target, call=call, at=at, do=reason, **on)
                what = call, at, os.strerror(reason)
                stage.check(code == 2, *what, "exit", code, err)
                stage.check(stage.names(target, err) and os.strerror(reason) in err, *what, "message:", err)
                stage.untouched(target, *what)


def failing_last_flush(stage):
    """The directory's: the new file stands, which is said."""
    stage.check(stage.calls[-1] in ("syncdir", "close") and "syncdir" in stage.calls, "no flush after the rename")
    target = stage.fresh()
    last = stage.calls.count("syncdir")
    code, err = stage.writer.run(target, call="syncdir", at=last, do=errno.EIO)
    stage.check(code == 2 and "complete" in err and os.strerror(errno.EIO) in err, "the last flush:", code, err)
    stage.made(target, "the last flush")


def failing_close(stage, chance):
    """What a close can still refuse was flushed before: either file, whole."""
    for at in stage.moments("close", chance):
        target = stage.fresh()
        code, err = stage.writer.run(target, call="close", at=at, do=errno.EIO)
        (stage.made if code == 0 else stage.untouched)(target, "close", at, code, err)


def odd_writes(stage):
    """Short ones, and interrupted ones: nothing is wrong with them."""
    for fault in ({"do": "short", "on": 1, "at": 1}, {"do": errno.EINTR, "at": 1}, {"do": errno.EINTR, "at": 2}):
        target = stage.fresh()
        code, err = stage.writer.run(target, call="write", **fault)
        stage.check(code == 0 and not err, fault, "exit", code, err)
        stage.made(target, fault)


def order(stage):
    """Everything is on the disk before the target is replaced, and the replacement at the end."""
    calls = [call for call in stage.calls if call != "close"]
    rename = calls.index("rename")
    stage.check(calls.count("rename") == 1 and "write" not in calls[rename:], "writes after the rename:", calls)
    last_write = max(at for at, call in enumerate(calls) if call == "write")
    stage.check("sync" in calls[last_write:rename], "nothing is flushed between the last write and the rename")
    stage.check(calls[rename + 1:] == ["syncdir"], "after the rename:", calls[rename + 1:])


# ---- ends of all kinds ---------------------------------------------------------------------------------------------

def killed(stage, chance):
    stale = 0
    for at in stage.moments(None, chance):
        target = stage.fresh()
        code, err = stage.writer.run(target, at=at, do="kill")
        stage.check(code == -signal.SIGKILL, "killed at call", at, "exit", code, err)
        there = snapshot(target)
        stage.check(there in (stage.before, stage.new), "killed at call", at, "the target is neither old nor new")
        stale += len(left_over(stage.folder))
        if stage.writer.folder and there == stage.new:
            continue
        code, err = stage.writer.run(target)
        stage.check(code == 0, "after a kill at call", at, "exit", code, err)
        stage.made(target, "after a kill at call", at)
    stage.check(stale, "no kill left anything: the moments are not what they should be")


def stopped(stage, chance):
    """A signal is answered with a clean stop, or too late: then the work is complete."""
    for number in (signal.SIGINT, signal.SIGTERM):
        for at in stage.moments(None, chance)[:8]:
            target = stage.fresh()
            code, err = stage.writer.run(target, at=at, do="s%d" % number)
            stage.check(code in (0, 128 + number), "signal", number, "at call", at, "exit", code, err)
            (stage.made if code == 0 else stage.untouched)(target, "signal", number, "at call", at)


def stopped_for_certain(work):
    """A payload that never ends can only be stopped."""
    for number in (signal.SIGINT, signal.SIGTERM):
        writer = Writer("seal", *IDENTITIES, "--chunk", "64K", "-", pipe="/dev/zero")
        folder = os.path.join(work, "endless-%d" % number)
        os.mkdir(folder)
        target = os.path.join(folder, "out")
        writer.old(target)
        code, err = writer.run(target, call="write", at=20, do="s%d" % number)
        faults.check(code == 128 + number and snapshot(target) == OLD and not left_over(folder),
                     "an endless payload, signal", number, "exit", code, err, left_over(folder))


# ---- targets -------------------------------------------------------------------------------------------------------

def targets(stage):
    writer = stage.writer
    target = os.path.join(os.path.dirname(stage.fresh(False)), "a/b/c", os.path.basename(stage.fresh(False)))
    code, err = writer.run(target)
    stage.check(code == 0 and snapshot(target) == stage.new, "missing parents: exit", code, err)

    target = stage.fresh()
    link = os.path.join(stage.folder, "link" + os.path.splitext(target)[1])
    os.symlink(os.path.basename(target), link)
    code, err = writer.run(link)
    stage.check(code == 0 and os.path.islink(link), "a link: exit", code, err)
    stage.made(target, "a link")

    suffix = os.path.splitext(target)[1]
    target = os.path.join(os.path.dirname(stage.fresh(False)), "n" * (255 - len(suffix)) + suffix)
    code, err = writer.run(target)
    stage.check(code == 0, "a name of 255 bytes: exit", code, err)
    stage.made(target, "a name of 255 bytes")
    code, err = writer.run(target + "n" if not suffix else target.replace("n.", "nn."))
    stage.check(code == 2 and os.strerror(errno.ENAMETOOLONG) in err, "a name of 256 bytes: exit", code, err)
    stage.check(os.listdir(stage.folder) == [os.path.basename(target)], "a name of 256 bytes left something")

    target = stage.fresh(False)
    with open(target, "wb") as stream:
        stream.write(OLD)
    below = os.path.join(target, "below" + suffix)
    code, err = writer.run(below)
    stage.check(code == 2 and os.strerror(errno.ENOTDIR) in err, "below a file: exit", code, err)


def file_targets(stage):
    target = stage.fresh()
    os.chmod(target, 0o640)
    stage.writer.run(target)
    stage.check(os.stat(target).st_mode & 0o7777 == 0o640, "the mode of the old file is lost")
    folder = stage.fresh(False)
    os.mkdir(folder)
    code, err = stage.writer.run(folder)
    stage.check(code == 2 and os.path.basename(folder) in err, "a directory: exit", code, err)
    stage.check(os.listdir(stage.folder) == [os.path.basename(folder)] and not os.listdir(folder), "a directory")
    if stage.writer.words[0] != "convert":  # its formats go by the target's name
        code, err = stage.writer.run("/dev/full")
        stage.check(code == 2 and "/dev/full" in err, "/dev/full: exit", code, err)


def two_at_once(stage, work):
    """The same target at the same time: one of the two, whole."""
    other = os.path.join(work, "other")
    with open(other, "wb") as stream:
        stream.write(b"other" * 200000)
    for _ in range(8):
        target = stage.fresh()
        mine, others = (subprocess.Popen([CKPT, "seal", *IDENTITIES, "--chunk", "64K", payload, target])
                        for payload in (stage.writer.words[-1], other))
        codes = mine.wait(), others.wait()
        there = snapshot(target)
        stage.check(codes == (0, 0), "two at once: exit", codes)
        stage.check(there == stage.new or there[4096:] == b"other" * 200000, "two at once: neither is there whole")
        stage.check(not left_over(stage.folder), "two at once left", left_over(stage.folder))


# ---- disks ---------------------------------------------------------------------------------------------------------

def size_of(new):
    return sum(-(-len(data or b"") // 4096) * 4096 for data in new.values()) if isinstance(new, dict) else len(new)


def disks(stage, work):
    """In a mount namespace: a disk that is too small, and one that is read-only."""
    disk = os.path.join(work, "disk")
    os.makedirs(disk, exist_ok=True)
    for tenths in (1, 5, 9):
        pages = size_of(stage.new) // 4096
        size = max(min(pages * tenths // 10, pages - 2), 1) * 4096
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % (size + 4096), "tmpfs", disk], check=True)
        target = os.path.join(disk, "out.safetensors" if stage.writer.words[0] == "convert" else "out")
        stage.folder = disk
        stage.writer.old(target)
        stage.before = snapshot(target)
        code, err = stage.writer.run(target)
        stage.check(code == 2 and stage.names(target, err) and os.strerror(errno.ENOSPC) in err,
                    "a full disk: exit", code, err)
        stage.untouched(target, "a full disk")
        subprocess.run(["mount", "-o", "remount,bind,ro", disk], check=True)
        code, err = stage.writer.run(target)
        stage.check(code == 2 and stage.names(target, err) and os.strerror(errno.EROFS) in err,
                    "a read-only disk: exit", code, err)
        stage.untouched(target, "a read-only disk")
        subprocess.run(["umount", disk], check=True)


    if stage.writer.folder:
        no_inodes(stage, disk)


def no_inodes(stage, disk):
    """A file that cannot be made is none that cannot be read: it may not be left out."""
    target = os.path.join(disk, "out")
    for inodes in range(3, 7):  # the folder, the target, what becomes it, and some of its files
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=%d" % inodes, "tmpfs", disk], check=True)
        stage.writer.old(target)
        stage.before = snapshot(target)
        code, err = stage.writer.run(target)
        stage.check(code == 2 and os.strerror(errno.ENOSPC) in err, "a disk of", inodes, "inodes: exit", code, err)
        stage.untouched(target, "a disk without inodes")
        subprocess.run(["umount", disk], check=True)


def own_mounts():
    """How to get a place to mount in; None: not at all."""
    for words in (["unshare", "-m"], ["unshare", "-Urm"]):
        try:
            if subprocess.run([*words, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode == 0:
                return words
        except FileNotFoundError:
            return None
    return None


def disks_of_all(work):
    for name, writer in writers(work).items():
        disks(Stage(name, writer, work), work)
    return faults.finish(6 * 3)


# ---- all of it -----------------------------------------------------------------------------------------------------

def calls_of_all(work, chance):
    for name, writer in writers(work).items():
        stage = Stage(name, writer, work)
        order(stage)
        failing_calls(stage, chance)
        failing_last_flush(stage)
        failing_close(stage, chance)
        odd_writes(stage)
        killed(stage, chance)
        stopped(stage, chance)
        targets(stage)
        if not writer.folder:
            file_targets(stage)
        if name == "seal":
            two_at_once(stage, work)
    stopped_for_certain(work)


def main():
    global SHIM
    with tempfile.TemporaryDirectory() as work:
        SHIM = os.path.join(work, "atomic.so")
        source = os.path.join(SRCDIR, "tests", "fs", "atomic.c")
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC", "-O1", "-o", SHIM, source], check=True)
        if sys.argv[1:] == ["disks"]:
            return disks_of_all(work)
        seed = int(os.environ.get("CKPT_SEED", random.randrange(1 << 32)))
        print("CKPT_SEED=%d" % seed)
        calls_of_all(work, random.Random(seed))
        space = own_mounts()
        if space:
            done = subprocess.run([*space, sys.executable, "-B", os.path.abspath(__file__), "disks"], check=False)
            faults.check(done.returncode == 0, "disks: exit", done.returncode)
        else:
            print("not tested: full and read-only disks (nothing can be mounted here)")
    return faults.finish(300)


if __name__ == "__main__":
    sys.exit(main())
