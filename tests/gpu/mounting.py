# SPDX-License-Identifier: Apache-2.0
"""For the tests that mount with -o gpu: the stand-in (or, with CKPTFS_TEST_GPU=real, the machine's driver) is what the
helper finds, and whatever a daemon leaves behind is a fault."""
import contextlib
import json
import os
import random
import select
import socket
import stat
import struct
import sys

TOP = os.path.realpath(os.environ.get("srcdir", "."))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TOP, "tests", "fs"), os.path.join(TOP, "tests", "gpu"), os.path.join(TOP, "tests")]
import lib
import talk
from talk import REAL

DEADLINE = 120  # seconds; what takes as long has not happened
HELPER = os.path.realpath(talk.HELPER)
FAIL = lib.path("fail")  # which calls of the stand-in go wrong: it looks there at each call
RUNTIME = lib.path("run")  # for sockets
os.mkdir(RUNTIME)
os.environ.update(talk.environment(CKPTFS_GPU_HELPER=HELPER, XDG_RUNTIME_DIR=RUNTIME, CKPTFS_STANDIN_FAIL="@" + FAIL))


def fail(*calls):
    """From now on these calls of the driver go wrong ("NAME:N:RESULT"); none: all go well."""
    with open(FAIL + ".new", "w") as stream:
        stream.write(",".join(calls))
    os.rename(FAIL + ".new", FAIL)


fail()


# ---- processes -------------------------------------------------------------------------------------------------------

def words_of(pid, name):
    try:
        with open("/proc/%s/%s" % (pid, name), "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def parent(pid):
    text = words_of(pid, "stat").rsplit(b")", 1)[-1].split()
    return int(text[1]) if text and text[0] not in (b"Z", b"X") else 0


def daemon(mount=None):
    """The process that serves the mount."""
    mount = (mount or lib.MOUNT).encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if words_of(pid, "comm").strip() == b"ckptfs" and mount in words_of(pid, "cmdline").split(b"\0"):
            return int(pid)
    return 0


def helpers(pid):
    """Its children."""
    return [int(child) for child in filter(str.isdigit, os.listdir("/proc")) if parent(child) == pid]


def memory_files(pid):
    """Its memfds."""
    folder = "/proc/%d/fd" % pid
    links = []
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            links.append(os.readlink(os.path.join(folder, name)))
    return [link for link in links if "memfd:" in link]


def await_end(pid, what):
    """Waits for the process to end, however that is brought about."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = select.select([fd], [], [], DEADLINE)[0]
    os.close(fd)
    lib.want(ended, "%s: process %d does not end", what, pid)


@contextlib.contextmanager
def mounted(source, *options, what="", **changes):
    """Mounts with gpu and these options, and the environment changed so; nothing may be left afterwards."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        with lib.mounted(source, "gpu", "log=" + lib.path("log"), *options) as mount:
            pid = daemon()
            try:
                yield mount
            finally:
                started = helpers(pid)
        await_end(pid, what)
        for helper in started:
            await_end(helper, what)
    finally:
        os.environ.clear()
        os.environ.update(before)
    lib.want(not os.listdir(RUNTIME), "%s: left %s", what, os.listdir(RUNTIME))


seen = [0]  # bytes of the log


def log():
    """The lines that the log got since the last call."""
    with open(lib.path("log"), "ab+") as stream:
        stream.seek(seen[0])
        whole = stream.read().rpartition(b"\n")[0:2]
    seen[0] += len(b"".join(whole))
    return whole[0].decode().splitlines()


# ---- files below gpu/ ------------------------------------------------------------------------------------------------

def path(name):
    return os.path.join(lib.MOUNT, "gpu", "tensors", name + ".json")


def error_of(name):
    """The errno that opening the tensor's file gives; 0: it can be opened."""
    try:
        with open(path(name), "rb") as stream:
            stream.read()
        return 0
    except OSError as error:
        return error.errno


def device():
    with open(os.path.join(lib.MOUNT, "gpu", "device.json"), encoding="utf-8") as stream:
        return json.load(stream)


def descriptor(info):
    """What the socket gives for the token; -1: nothing."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.settimeout(DEADLINE)
        sock.connect(info["socket"])
        sock.sendall(info["token"].encode())
        answer, fds, _, _ = socket.recv_fds(sock, 2, 1)
    lib.want(answer == (b"y" if fds else b"n"), "the socket answers %r with %d descriptors", answer, len(fds))
    return fds[0] if fds else -1


def on_device(info):
    """The bytes that another process sees there."""
    ready = {"share": talk.IPC if info["share"] == "ipc" else talk.FD, "fd": -1, "offset": info["offset"],
             "bytes": info["bytes"], "block": info.get("block", 0)}
    if info["share"] == "ipc":
        ready["handle"] = bytes.fromhex(info["ipc_handle"])
    else:
        ready["fd"] = descriptor(info)
    return talk.peek(ready, info["device"])


def content(name):
    """(what the tensor's file says, its bytes on the device)"""
    with open(path(name), encoding="utf-8") as stream:
        info = json.load(stream)
        return info, on_device(info)


def stored(name):
    with open(os.path.join(lib.MOUNT, "raw", "tensors", name + ".bin"), "rb") as stream:
        return stream.read()


def mode(name):
    return stat.S_IMODE(os.stat(name).st_mode)


# ---- checkpoints -----------------------------------------------------------------------------------------------------

def write_safetensors(name, tensors):
    """tensors: {name: (dtype, shape, bytes)}; the path."""
    header, at = {}, 0
    for key, (dtype, shape, data) in tensors.items():
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(lib.path(name), "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            stream.write(data)
    return lib.path(name)


def pattern(seed, size):
    """Bytes that differ from place to place and from tensor to tensor."""
    return random.Random(seed).randbytes(size)
