#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""-o gpu when something is wrong with the driver, the device, the helper or the tensor: the open gets the errno that is
documented and the log one line, the rest of the mount works, the next open is served, and nothing is left."""
import errno
import os
import shutil
import signal
import subprocess
import sys

import mounting
from mounting import REAL, error_of, fail, lib, path

MIB = 1 << 20
SIZE = 3 * MIB // 2
A, B = mounting.pattern(1, SIZE), mounting.pattern(2, SIZE)
SOURCE = mounting.write_safetensors("model.safetensors", {
    "a": ("U8", [SIZE], A), "b": ("U8", [SIZE], B), "wide": ("BF16", [3], b"\x80\x3f\x00\x40\x40\x40")})
FAKE = lib.path("fake")
MANNER = lib.path("manner")
SOON = "3"  # seconds: the deadline where something is to hang


def want_error(where, code, *words, opens=None):
    """Opening a fails so (or what `opens` opens), says so once, and breaks nothing else."""
    got = (opens or (lambda: error_of("a")))()
    lib.want(got == code, "%s: errno %s, want %s", where, errno.errorcode.get(got, got), errno.errorcode.get(code, code))
    lines = mounting.log()
    lib.want(len(lines) == 1 and all(word in lines[0] for word in words), "%s: want a line with %s: %s", where, words, lines)
    lib.want(lib.read(lib.MOUNT + "/tensors/a.npy")[-SIZE:] == A, "%s: a.npy cannot be read", where)


def want_good(where):
    """All is well again."""
    for name, data in (("a", A), ("b", B)):
        lib.want(mounting.content(name)[1] == data, "%s: %s afterwards", where, name)
    lib.want(mounting.log() == [], "%s: something is said of what is well", where)


def idle(where):
    """Nothing runs, nothing is held."""
    pid = mounting.daemon()
    left = [child for child in mounting.helpers(pid)]
    lib.want(not left and not mounting.memory_files(pid), "%s: left %s, %s", where, left, mounting.memory_files(pid))


# ---- no helper, no driver, no device ---------------------------------------------------------------------------------

def check_no_helper():
    os.mkdir(lib.path("folder"))
    for helper, words in ((lib.path("absent"), "No such file"), (lib.path("folder"), "Permission denied")):
        with mounting.mounted(SOURCE, what=helper, CKPTFS_GPU_HELPER=helper):
            for _ in range(2):
                want_error(helper, errno.ENODEV, helper, words)
            want_error(helper, errno.ENODEV, words, opens=lambda: lib.read(lib.MOUNT + "/gpu/device.json"))
            idle(helper)
    with mounting.mounted(SOURCE, what="no program", CKPTFS_GPU_HELPER="/bin/true"):
        want_error("no program", errno.EIO, "exit code 0")
        idle("no program")


def check_no_driver():
    folder = lib.path("empty")
    os.mkdir(folder)
    with open(os.path.join(folder, "libcuda.so.1"), "wb"):
        pass  # the loader looks no further
    with mounting.mounted(SOURCE, what="no driver", LD_LIBRARY_PATH=folder):
        for _ in range(2):
            want_error("no driver", errno.ENODEV, "no CUDA driver")
        idle("no driver")


def check_no_device():
    with mounting.mounted(SOURCE, "gpu=97", what="no such device"):
        want_error("no such device", errno.ENODEV, "97")
        idle("no such device")


def check_late_driver():
    with mounting.mounted(SOURCE, what="late driver"):
        fail("cuInit:0:100")
        want_error("late driver", errno.ENODEV, "cuInit")
        idle("late driver")
        fail()
        want_good("late driver")


# ---- the device ------------------------------------------------------------------------------------------------------

CALLS = (  # (call, share, the tensor that needs it)
    ("cuMemAlloc", "ipc", "a"), ("cuMemcpyHtoDAsync", "ipc", "a"), ("cuEventRecord", "ipc", "a"),
    ("cuEventSynchronize", "ipc", "a"), ("cuStreamSynchronize", "ipc", "a"), ("cuIpcGetMemHandle", "ipc", "a"),
    ("cuMemCreate", "fd", "a"), ("cuMemAddressReserve", "fd", "a"), ("cuMemMap", "fd", "a"), ("cuMemSetAccess", "fd", "a"),
    ("cuMemExportToShareableHandle", "fd", "a"), ("cuLaunchKernel", "ipc", "wide"))


def check_calls():
    """Each call of a load, failing in each way."""
    for share in ("ipc", "fd"):
        with mounting.mounted(SOURCE, "gpu_share=" + share, "gpu_dtype=f32", what=share):
            converts = mounting.device()["converts"]
            for call, kind, name in CALLS:
                if kind != share or (name == "wide" and not converts):
                    continue
                for result, code in (("2", errno.ENOMEM), ("1", errno.EIO), ("719", errno.EIO), ("die", errno.EIO)):
                    where = "%s %s" % (call, result)
                    mounting.device()
                    fail("%s:0:%s" % (call, result))
                    want_error(where, code, "'%s'" % name, opens=lambda: error_of(name))
                    fail()
                    lib.want(error_of(name) == 0, "%s: the next open fails", where)
                    lib.want(all("helper" in line for line in mounting.log()), "%s: what is said of the next one", where)
                    end_helper()
            want_good(share)


def end_helper():
    """Nothing is on the device any more, and the next open starts anew."""
    for helper in mounting.helpers(mounting.daemon()):
        os.kill(helper, signal.SIGKILL)
        mounting.await_end(helper, "a killed helper")
        while not mounting.log():
            pass


def check_hangs():
    for call, opens in (("cuInit", None), ("cuMemAlloc", None), ("cuMemcpyHtoDAsync", None), ("cuStreamSynchronize", None),
                        ("cuMemGetInfo", lambda: lib.read(lib.MOUNT + "/gpu/device.json"))):
        with mounting.mounted(SOURCE, what=call, CKPTFS_GPU_REPLY_SECONDS=SOON, CKPTFS_GPU_START_SECONDS=SOON):
            if call != "cuInit":
                mounting.device()
            fail(call + ":0:hang")
            want_error(call, errno.ETIMEDOUT, SOON + "000 ms", "killed", opens=opens)
            idle(call)
            fail()
            want_good(call)


def check_hanging_release():
    """Room for one: the first is let go for the second, which never ends."""
    with mounting.mounted(SOURCE, "gpu_budget=2M", what="release", CKPTFS_GPU_REPLY_SECONDS=SOON):
        mounting.content("b")
        fail("cuMemFree:0:hang")
        want_error("release", errno.ETIMEDOUT, "killed")
        fail()
        want_good("release")


# ---- the helper dies -------------------------------------------------------------------------------------------------

def check_killed():
    with mounting.mounted(SOURCE, what="killed"):
        with open(path("a"), encoding="utf-8") as stream:
            before = stream.read()
            (helper,) = mounting.helpers(mounting.daemon())
            os.kill(helper, signal.SIGKILL)
            mounting.await_end(helper, "killed")
            stream.seek(0)
            lib.want(stream.read() == before, "the text of an open file changes")
            lib.want(mounting.content("a")[1] == A, "what is gone is handed out")
            lines = mounting.log()
            lib.want(len(lines) == 1 and "signal 9" in lines[0], "the log: %s", lines)
        want_good("killed")


def check_ignored_children():
    """Whoever started the daemon ignores SIGCHLD, and so nobody can tell how a helper ended."""
    done = subprocess.run([lib.CKPTFS, "-o", "gpu,log=" + lib.path("log"), SOURCE, lib.MOUNT], check=False,
                          preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    lib.want(done.returncode == 0, "does not mount without SIGCHLD: exit code %d", done.returncode)
    lib.want(mounting.content("a")[1] == A, "without SIGCHLD: a")
    pid = mounting.daemon()
    for helper in mounting.helpers(pid):
        os.kill(helper, signal.SIGKILL)
        mounting.await_end(helper, "without SIGCHLD")
    lib.want(mounting.content("b")[1] == B, "without SIGCHLD: b")
    lines = mounting.log()
    lib.want(len(lines) == 1 and "nobody knows how" in lines[0], "without SIGCHLD: %s", lines)
    want_good("without SIGCHLD")
    os.kill(pid, signal.SIGTERM)
    mounting.await_end(pid, "without SIGCHLD")


def check_killed_while_loading():
    with mounting.mounted(SOURCE, what="killed while loading"):
        mounting.device()
        (helper,) = mounting.helpers(mounting.daemon())
        fail("cuMemcpyHtoDAsync:0:hang")
        pid = os.fork()
        if not pid:
            os._exit(error_of("a"))
        while mounting.device()["memory_used"] == 0:
            pass
        os.kill(helper, signal.SIGKILL)
        lib.want(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == errno.EIO, "a load whose helper was killed")
        fail()
        lines = mounting.log()
        lib.want(len(lines) == 1 and "signal 9" in lines[0] and "'a'" in lines[0], "the log: %s", lines)
        want_good("killed while loading")


# ---- the helper talks nonsense ---------------------------------------------------------------------------------------

EVERY = ("exits", "empty", "short", "long", "huge", "garbage", "version", "type", "other type", "request", "brings")
ROWS = [(step, manner) for step in ("hello", "begin", "fill", "end") for manner in EVERY] + [
    ("hello", "flag"), ("hello", "stray error"), ("begin", "other id"), ("begin", "other bytes"), ("begin", "other dtype"),
    ("begin", "stray error"), ("begin", "blame"), ("begin", "no errno"), ("fill", "other id"), ("fill", "other half"),
    ("fill", "refuses"), ("fill", "twice"), ("begin", "twice"), ("end", "other id"), ("end", "other bytes"),
    ("end", "past the end"), ("end", "other share"), ("end", "refuses"), ("hello", "refuses"), ("begin", "refuses")]


def make_fake():
    """fake.py as a program of this Python, without what starts slowly: it is started some hundred times."""
    with open(os.path.join(mounting.TOP, "tests", "gpu", "fake.py"), encoding="utf-8") as script, open(FAKE, "w") as copy:
        copy.write("#!%s -IS\n" % sys.executable + script.read())
    os.chmod(FAKE, 0o755)


def misbehave(step="", manner=""):
    with open(MANNER + ".new", "w") as stream:
        stream.write((step + " " + manner).strip())
    os.rename(MANNER + ".new", MANNER)


def check_nonsense():
    make_fake()
    misbehave()
    with mounting.mounted(SOURCE, what="nonsense", CKPTFS_GPU_HELPER=FAKE, CKPTFS_FAKE=MANNER,
                          CKPTFS_GPU_REPLY_SECONDS="60"):
        for step, manner in ROWS:
            where = "%s at %s" % (manner, step)
            if step != "hello":
                mounting.device()
            misbehave(step, manner)
            want_error(where, errno.EIO)
            misbehave()
            lib.want(error_of("b") == 0, "%s: the next open fails", where)
            end_helper()
    for step, opens in (("info", lambda: lib.read(lib.MOUNT + "/gpu/device.json")), ("release", None)):
        for manner in EVERY:
            with mounting.mounted(SOURCE, "gpu_budget=2M", what=step, CKPTFS_GPU_HELPER=FAKE, CKPTFS_FAKE=MANNER):
                lib.want(error_of("b") == 0, "%s: b", step)
                misbehave(step, manner)
                want_error("%s at %s" % (manner, step), errno.EIO, opens=opens)
                misbehave()
                lib.want(error_of("a") == 0, "%s at %s: the next open fails", manner, step)
    with mounting.mounted(SOURCE, what="out of turn", CKPTFS_GPU_HELPER=FAKE, CKPTFS_FAKE=MANNER):
        misbehave("end", "twice")
        lib.want(error_of("a") in (0, errno.EIO), "it may be gone before the opener sees that it is there")
        for helper in mounting.helpers(mounting.daemon()):
            mounting.await_end(helper, "a helper that speaks out of turn")
        misbehave()
        lib.want(error_of("a") == 0, "after a helper that spoke out of turn")


# ---- the tensor ------------------------------------------------------------------------------------------------------

def check_damage():
    golden = os.path.join(lib.GOLDEN, "oam", "valid", "transformer_adamw.oam")
    damaged = lib.copy(golden, "damaged.oam")
    with open(damaged, "r+b") as stream:
        stream.seek(7463 + 4096)  # in the weights
        byte = stream.read(1)
        stream.seek(-1, 1)
        stream.write(bytes([byte[0] ^ 1]))
    with mounting.mounted(damaged, what="damage"):
        for _ in range(2):
            lib.want(error_of("tok.weight") == errno.EIO, "a damaged tensor is loaded")
            lib.want(lib.read(lib.MOUNT + "/tensors/tok.weight.npy") == errno.EIO, "the damaged .npy is read")
        lib.want(mounting.device()["memory_used"] == 0, "something of it stays on the device")
        lib.want(any("tok.weight" in line for line in mounting.log()), "the log does not name it")
    make_fake()
    with mounting.mounted(damaged, what="taken back", CKPTFS_GPU_HELPER=FAKE, CKPTFS_FAKE=MANNER):
        misbehave("release", "exits")
        lib.want(error_of("tok.weight") == errno.EIO, "a damaged tensor is loaded")
        misbehave()
        lib.want(any("taken back" in line for line in mounting.log()), "it is not said")
        lib.want(error_of("tok.weight") == errno.EIO, "a damaged tensor is loaded afterwards")
        mounting.log()
    with mounting.mounted(damaged, "redact", what="redact"):
        error_of("tok.weight")
        lines = mounting.log()
        lib.want(lines and not any("tok.weight" in line or "damaged" in line for line in lines), "redact: %s", lines)
    shutil.copyfile(golden, damaged)


checks = [check_no_helper, check_no_driver, check_no_device, check_killed, check_nonsense, check_damage,
          check_ignored_children]
if not REAL:
    checks += [check_late_driver, check_calls, check_hangs, check_hanging_release, check_killed_while_loading]
for check in checks:
    check()
lib.finish()
