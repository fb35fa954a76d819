#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""-o gpu: when something is loaded, who shares it, how long it stays, what the budget lets go, and that nobody waits for
what is none of their business."""
import concurrent.futures
import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys

import mounting
from mounting import REAL, device, error_of, fail, lib, path

MIB = 1 << 20
SIZE = 3 * MIB // 2  # has an allocation of its own: 2 MiB
NAMES = "abcde"
TENSORS = {name: ("U8", [SIZE], mounting.pattern(ord(name), SIZE)) for name in NAMES}
TENSORS.update({"small.%d" % i: ("F32", [2, 3], mounting.pattern(i, 24)) for i in range(6)})
TENSORS["empty"] = ("F32", [0, 4], b"")
SOURCE = mounting.write_safetensors("model.safetensors", TENSORS)
NO_COPY = "cuMemcpyHtoDAsync:0:1"  # from then on only what is on the device can be opened
WAIT = {"CKPTFS_GPU_REPLY_SECONDS": "3600"}  # who is to end sooner must not wait for that


def used():
    return device()["memory_used"]


def await_used(size):
    """The kernel tells of closed files when it likes to; this ends when it has."""
    while used() != size:
        pass


def is_kept(name):
    """Whether the tensor is on the device; it counts as used now."""
    fail(NO_COPY)
    code = error_of(name)
    fail()
    lib.want(code in (0, errno.EIO), "%s: errno %d", name, code)
    mounting.log()
    return code == 0


@contextlib.contextmanager
def opened(*names):
    """The open files of these tensors, read: they stay on the device."""
    files = [open(path(name), encoding="utf-8") for name in names]
    try:
        yield [json.load(stream) for stream in files]
    finally:
        for stream in files:
            with contextlib.suppress(OSError):  # where the mount has ended meanwhile
                stream.close()


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=mounting.DEADLINE, check=False)


# ---- what nobody asked for -------------------------------------------------------------------------------------------

def check_without():
    with lib.mounted(SOURCE) as mount:
        pid = mounting.daemon()
        lib.want(not os.path.exists(mount + "/gpu"), "there is a gpu/ without -o gpu")
        lib.read(mount + "/tensors/a.npy")
        maps = mounting.words_of(pid, "maps")
        lib.want(b"libcuda" not in maps and b"memfd" not in maps, "without -o gpu: %s", maps)
        lib.want(not mounting.helpers(pid) and not mounting.memory_files(pid), "without -o gpu something runs")


def check_first_open():
    with mounting.mounted(SOURCE, what="first open") as mount:
        pid = mounting.daemon()
        listing = run("ls", "-lR", mount + "/gpu").stdout
        lib.want("a.json" in listing and "device.json" in listing, "%s", listing)
        found = run("find", mount + "/gpu", "-type", "f", "-size", "0").stdout.split()
        lib.want(len(found) == len(TENSORS) + 1, "find: %s", found)
        lib.want(os.stat(mount + "/gpu").st_nlink == 3 and mounting.mode(path("a")) == 0o444, "links or modes")
        lib.want(lib.read(mount + "/tensors/a.npy")[-SIZE:] == TENSORS["a"][2], "the .npy")
        lib.want(not mounting.helpers(pid) and not mounting.memory_files(pid), "something runs before the first open")
        facts = device()
        lib.want(facts["memory_used"] == 0 and facts["budget"] <= facts["memory_total"], "%s", facts)
        lib.want(len(mounting.helpers(pid)) == 1, "the helpers are %s", mounting.helpers(pid))
        lib.want(mounting.words_of(mounting.helpers(pid)[0], "comm").strip() == b"ckptfs-gpu", "another helper")
        lib.want(b"libcuda" not in mounting.words_of(pid, "maps"), "the daemon has the driver in it")
        for name in ("nothing", "a.npy", ""):
            lib.want(error_of(name) == errno.ENOENT, "%r is there", name)
        lib.want(mounting.content("empty")[1] == b"", "the empty tensor")


def check_programs():
    """What goes over whole trees loads everything, or nothing, but ends."""
    for switches in ((), ("-s",)):
        done = subprocess.run([lib.CKPTFS, *switches, "-o", "gpu", SOURCE, lib.MOUNT], check=False)
        lib.want(done.returncode == 0, "%s: exit code %d", switches, done.returncode)
        gpu = lib.MOUNT + "/gpu"
        archived = subprocess.run("tar cf - -C %s gpu | tar tf -" % lib.MOUNT, shell=True, capture_output=True, text=True,
                                  timeout=mounting.DEADLINE, check=False)
        lib.want(len(archived.stdout.split()) == len(TENSORS) + 3, "tar: %s", archived)
        lib.want(run("grep", "-rlE", '"uuid":', gpu).stdout.count("\n") == len(TENSORS) + 1, "grep -r")
        lib.want(run("cp", "-r", gpu, lib.path("copy")).returncode == 0, "cp -r")
        with open(lib.path("copy/tensors/a.json"), encoding="utf-8") as stream:
            lib.want(json.load(stream)["bytes"] == SIZE, "cp copies something else")
        run("chmod", "-R", "u+w", lib.path("copy"))
        run("rm", "-r", lib.path("copy"))
        lib.want(run("umount", lib.MOUNT).returncode == 0, "stays busy")


def check_selection():
    for globs, wanted in (("a", ["a"]), ("a:small.*", ["a"] + ["small.%d" % i for i in range(6)]), ("[b-d]", list("bcd")),
                          ("x::y", []), ("*", list(TENSORS))):
        with mounting.mounted(SOURCE, "gpu_tensors=" + globs, what=globs) as mount:
            found = sorted(name[:-5] for name in os.listdir(mount + "/gpu/tensors"))
            lib.want(found == sorted(wanted), "gpu_tensors=%s: %s", globs, found)


def check_long_names():
    """251 bytes fit before ".npy" but not before ".json"."""
    names = ["n" * 250, "m" * 251, "o" * 252, "dir/%s" % ("p" * 300)]
    source = mounting.write_safetensors("long.safetensors", {name: ("U8", [1], b"x") for name in names})
    with mounting.mounted(source, what="long names") as mount:
        found = os.listdir(mount + "/gpu/tensors")
        lib.want(len(found) == 4 and max(map(len, found)) <= 255, "%s", found)
        seen = {json.load(open(os.path.join(mount, "gpu/tensors", name), encoding="utf-8"))["name"] for name in found}
        lib.want(seen == set(names), "%s", seen)
        lib.want(error_of("q" * 200 + "~0123456789abcdef") == errno.ENOENT, "a name that was never there")


# ---- sharing ---------------------------------------------------------------------------------------------------------

def check_sharing(share):
    with mounting.mounted(SOURCE, "gpu_share=" + share, what=share):
        with opened("a", "a", "b") as (first, second, other):
            lib.want(mounting.on_device(first) == mounting.on_device(second) == TENSORS["a"][2], "a's bytes")
            lib.want(mounting.on_device(other) == TENSORS["b"][2], "b's bytes")
            lib.want(used() == 4 * MIB, "%d bytes for two tensors", used())
            if share == "ipc":
                lib.want(first == second, "two copies")
            else:
                lib.want(first["token"] != second["token"] != other["token"], "tokens repeat")
        lib.want(used() == 4 * MIB, "the last close lets go, with no need")
        if not REAL:
            lib.want(is_kept("a") and is_kept("b") and not is_kept("c"), "what is kept is loaded again")
        lib.want(mounting.content("c")[1] == TENSORS["c"][2], "c after it failed")


def check_at_once():
    """Many open one tensor: one load, and the others too."""
    names = ["a"] * 24 + ["b", "c", "small.1", "small.2"] * 3
    with mounting.mounted(SOURCE, what="at once"):
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            fail("cuMemcpyHtoDAsync:6:1")  # five tensors need five copies
            infos = list(pool.map(lambda name: mounting.content(name), names))
            fail()
        for name, (info, data) in zip(names, infos):
            lib.want(info["name"] == name and data == TENSORS[name][2], "%s at once", name)


def check_small_ones():
    with mounting.mounted(SOURCE, what="small ones"):
        names = ["small.%d" % i for i in range(6)]
        with opened(*names) as infos:
            for name, info in zip(names, infos):
                lib.want(mounting.on_device(info) == TENSORS[name][2] and info["offset"] % 256 == 0, "%s: %s", name, info)
            lib.want(used() == 2 * MIB, "%d bytes for six small ones", used())


# ---- the budget ------------------------------------------------------------------------------------------------------

def check_budget():
    with mounting.mounted(SOURCE, "gpu_budget=6M", what="budget"):
        lib.want(device()["budget"] == 6 * MIB, "%s", device())
        for name in "abc":
            mounting.content(name)
        lib.want(used() == 6 * MIB, "%d bytes for three", used())
        mounting.content("a")
        mounting.content("d")  # b was used least recently
        lib.want(used() == 6 * MIB, "%d bytes for three of four", used())
        if not REAL:
            lib.want(is_kept("c") and is_kept("a") and is_kept("d"), "what was used was let go")
            lib.want(not is_kept("b"), "b was kept")  # in vain, but room was made for it
        with opened("c", "a", "d") as infos:
            lib.want(error_of("b") == errno.ENOMEM, "more than the budget is in use")
            lines = mounting.log()
            lib.want(len(lines) == 1 and "'b'" in lines[0] and "6291456" in lines[0], "the log: %s", lines)
            lib.want(mounting.on_device(infos[1]) == TENSORS["a"][2], "a tensor in use was let go")
            lib.want(error_of("c") == 0, "what is there cannot be opened")
        lib.want(mounting.content("b")[1] == TENSORS["b"][2], "b, once there is room")
        lib.want(used() == 6 * MIB, "%d bytes at the end", used())
    with mounting.mounted(SOURCE, "gpu_budget=1M", what="small budget"):
        lib.want(error_of("a") == errno.ENOMEM and used() == 0, "a tensor larger than the budget")
        lines = mounting.log()
        lib.want(len(lines) == 1 and "2097152" in lines[0] and "1048576" in lines[0], "the log: %s", lines)
        lib.want(error_of("small.1") == 0, "a tensor within the budget")


def check_budget_of_none():
    with mounting.mounted(SOURCE, "gpu_budget=0", what="budget 0"):
        with opened("a", "b"):
            lib.want(used() == 4 * MIB, "%d bytes in use", used())
        await_used(0)
        mounting.content("small.3")
        await_used(0)
        lib.want(device()["budget"] is None, "%s", device())
        lib.want(mounting.content("a")[1] == TENSORS["a"][2], "a again")


def check_full_device():
    """The device has room for two: what nobody holds goes, and what somebody holds stays."""
    with mounting.mounted(SOURCE, "gpu_budget=1G", what="full device", CKPTFS_STANDIN_MEMORY=str(4 * MIB)):
        for name in NAMES:
            lib.want(mounting.content(name)[1] == TENSORS[name][2], "%s on a full device", name)
        with opened("d", "e"):
            lib.want(error_of("a") == errno.ENOMEM, "a full device")
            lines = mounting.log()
            lib.want(len(lines) == 1 and "cuMemAlloc" in lines[0], "the log: %s", lines)
        lib.want(error_of("a") == 0, "the device has room again")


# ---- the socket ------------------------------------------------------------------------------------------------------

AS_NOBODY = """
import os, socket, sys
os.setgid(65534), os.setuid(65534)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
    try:
        sock.connect(sys.argv[1])
        sock.sendall(sys.argv[2].encode())
        print(sock.recv(1))
    except OSError as error:
        print(error.__class__.__name__)
"""


def check_socket():
    with mounting.mounted(SOURCE, "gpu_share=fd", what="socket"):
        lib.want(os.listdir(mounting.RUNTIME) == [], "a socket before it is needed")
        with opened("a") as (info,):
            folder = os.path.dirname(info["socket"])
            lib.want(folder.startswith(mounting.RUNTIME + "/"), "the socket is %s", info["socket"])
            lib.want(mounting.mode(folder) == 0o700 and mounting.mode(info["socket"]) == 0o600, "modes")
            lib.want(len(info["token"]) == 32 and info["block"] == 2 * MIB, "%s", info)
            for token in ("0" * 32, info["token"][:-1], info["token"] + "0", "x", info["token"].upper()):
                if token != info["token"]:
                    lib.want(mounting.descriptor({**info, "token": token}) < 0, "token %s", token)
            with contextlib.ExitStack() as stack:  # who connects and says nothing keeps nobody
                for _ in range(100):
                    sock = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                    sock.connect(info["socket"])
                lib.want(mounting.on_device(info) == TENSORS["a"][2], "with silent clients")
            if os.geteuid() == 0:
                words = [sys.executable, "-c", AS_NOBODY, info["socket"], info["token"]]
                lib.want(run(*words).stdout.strip() == "PermissionError", "the directory lets others in")
                for name, bits in ((lib.SCRATCH, 0o755), (mounting.RUNTIME, 0o755), (folder, 0o755), (info["socket"], 0o666)):
                    os.chmod(name, bits)
                said = run(*words).stdout.strip()
                lib.want(said in ("b''", "BrokenPipeError", "ConnectionResetError"), "another user gets %s", said)
            before = mounting.descriptor(info)
        while mounting.descriptor(info) >= 0:  # until the kernel has told of the close
            pass
        os.close(before)


def check_crash():
    """A daemon that is killed takes its helper along; the next one removes its socket."""
    lib.want(lib.run(SOURCE, "gpu", "gpu_share=fd")[0] == 0, "does not mount")
    pid = mounting.daemon()
    with opened("a"):
        (helper,) = mounting.helpers(pid)
        os.kill(pid, signal.SIGKILL)
        mounting.await_end(pid, "crash")
        mounting.await_end(helper, "crash")
    run("umount", "-l", lib.MOUNT)
    left = os.listdir(mounting.RUNTIME)
    lib.want(len(left) == 1, "a killed daemon leaves %s", left)
    with mounting.mounted(SOURCE, "gpu_share=fd", what="after a crash"):
        with opened("a"):
            lib.want(len(os.listdir(mounting.RUNTIME)) == 1 and os.listdir(mounting.RUNTIME) != left, "is not removed")


# ---- ends ------------------------------------------------------------------------------------------------------------

def check_signals():
    for number in (signal.SIGTERM, signal.SIGINT):
        lib.want(lib.run(SOURCE, "gpu", "gpu_share=fd")[0] == 0, "does not mount")
        pid = mounting.daemon()
        with opened("a", "small.1"):
            (helper,) = mounting.helpers(pid)
            os.kill(pid, number)
            mounting.await_end(pid, "signal")
        mounting.await_end(helper, "signal")
        lib.want(not lib.is_mounted() and not os.listdir(mounting.RUNTIME), "signal %d leaves something", number)


def check_lazy_unmount():
    lib.want(lib.run(SOURCE, "gpu", "gpu_share=fd")[0] == 0, "does not mount")
    pid = mounting.daemon()
    with opened("a") as (info,):
        run("umount", "-l", lib.MOUNT)
        lib.want(mounting.on_device(info) == TENSORS["a"][2], "an open tensor ends with the mount's name")
        (helper,) = mounting.helpers(pid)
    mounting.await_end(pid, "lazy unmount")
    mounting.await_end(helper, "lazy unmount")
    lib.want(not os.listdir(mounting.RUNTIME), "a lazy unmount leaves something")


def check_killed_consumer():
    with mounting.mounted(SOURCE, "gpu_budget=0", what="killed consumer"):
        words = [sys.executable, "-c", "import sys; f = open(sys.argv[1]); f.read(); print(flush=True); sys.stdin.read()"]
        consumer = subprocess.Popen([*words, path("a")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        consumer.stdout.readline()
        lib.want(used() == 2 * MIB, "%d bytes in use", used())
        consumer.kill()
        consumer.communicate()
        await_used(0)


def check_two_daemons():
    other = lib.path("other")
    os.mkdir(other)
    with mounting.mounted(SOURCE, what="one of two"):
        done = subprocess.run([lib.CKPTFS, "-o", "gpu", SOURCE, other], check=False)
        lib.want(done.returncode == 0, "the other one: exit code %d", done.returncode)
        pid = mounting.daemon(other)
        with opened("a") as (info,), open(other + "/gpu/tensors/a.json", encoding="utf-8") as stream:
            twin = json.load(stream)
            lib.want(twin["ipc_handle"] != info["ipc_handle"], "two daemons have one copy")
            os.kill(mounting.helpers(pid)[0], signal.SIGKILL)
            lib.want(mounting.on_device(info) == TENSORS["a"][2], "after the other one's end")
        lib.want(run("umount", other).returncode == 0, "the other one stays busy")
        mounting.await_end(pid, "the other one")


# ---- who waits for whom ----------------------------------------------------------------------------------------------

def opener(name):
    """A process that opens the tensor; it ends with its errno."""
    words = "import sys\ntry: open(sys.argv[1]).read()\nexcept OSError as e: sys.exit(e.errno)"
    return subprocess.Popen([sys.executable, "-c", words, path(name)], stderr=subprocess.DEVNULL)


def check_waiting():
    """While a load hangs: other files, closing, the device's file; then who waits is interrupted, then all is unmounted."""
    with mounting.mounted(SOURCE, what="waiting", **WAIT) as mount:
        with opened("a", "small.1"):
            pid = mounting.daemon()
            fail("cuMemcpyHtoDAsync:0:hang")
            first, joining, queued = opener("b"), opener("b"), opener("c")
            while used() != 6 * MIB:  # b has its memory: its load is under way
                pass
            lib.want(lib.read(mount + "/tensors/b.npy")[-SIZE:] == TENSORS["b"][2], "other files")
            lib.want(error_of("a") == 0, "what is there already")
        for process in (joining, queued):
            process.send_signal(signal.SIGINT)
            lib.want(process.wait(mounting.DEADLINE) != 0, "an interrupted open succeeds")
        late = opener("d")
        lib.want(first.poll() is None, "the first opener has ended: %s", first.returncode)
        os.kill(pid, signal.SIGTERM)
        for process in (first, late):
            lib.want(process.wait(mounting.DEADLINE) != 0, "an open succeeds after the end")
        mounting.await_end(pid, "while a load hangs")
        fail()
        subprocess.run([lib.CKPTFS, SOURCE, lib.MOUNT], check=False)  # for the unmount to come


def check_interrupted():
    """All who waited are gone: nothing half loaded stays, and the next one is served."""
    big = mounting.write_safetensors("big.safetensors", {"big": ("U8", [40 * MIB], bytes(40 * MIB)), **TENSORS})
    with mounting.mounted(big, what="interrupted"):
        used()
        for _ in range(5):
            process = opener("big")
            while process.poll() is None and used() < 40 * MIB:  # until its load has begun
                pass
            process.kill()
            process.wait()
        lib.want(mounting.content("a")[1] == TENSORS["a"][2], "a after interrupted loads")
        lib.want(mounting.content("big")[1] == bytes(40 * MIB), "big after interrupted loads")
        lib.want(used() == 42 * MIB, "%d bytes used", used())


checks = [check_without, check_first_open, check_programs, check_selection, check_long_names, lambda: check_sharing("ipc"),
          lambda: check_sharing("fd"), check_small_ones, check_budget, check_budget_of_none, check_socket, check_crash,
          check_signals, check_lazy_unmount, check_killed_consumer, check_two_daemons, check_interrupted]
if not REAL:
    checks += [check_at_once, check_full_device, check_waiting]
for check in checks:
    check()
lib.finish()
