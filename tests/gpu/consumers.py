#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""contrib/gpu: the Python module and the C example open what the helper shares, see the same bytes as we do, and leave
nothing open however they fail. Failures are the stand-in's; the rest also runs with CKPTFS_TEST_GPU=real."""
import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import types

TOP = os.path.abspath(os.environ.get("srcdir", "."))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TOP, "tests", "gpu"), os.path.join(TOP, "contrib", "gpu")]
import talk
from talk import FD, IPC, REAL, environment
try:
    import numpy
except ImportError:
    numpy = None

MODULE = os.path.join(TOP, "contrib", "gpu", "ckptfs_gpu.py")
EXAMPLE = os.path.join(talk.BUILDDIR, "tests", "gpu", "example")
SCRATCH = tempfile.mkdtemp()
TOKEN = "0123456789abcdef" * 2
VALUES = struct.pack("<6f", 1.5, -2.25, float("inf"), 1e-40, 0.0, 3e38)
checks = faults = 0


def check(holds, *words):
    global checks, faults
    checks += 1
    if not holds:
        faults += 1
        print("fault:", *words)


# ---- what a mount does ---------------------------------------------------------------------------------------------

class Desk:
    """The mount's socket: a process that answers each client with the descriptor."""

    def __init__(self, fd):
        self.path, self.fd = os.path.join(SCRATCH, "socket"), fd
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen()
        self.pid = os.fork()  # so that its descriptors are not among ours
        if not self.pid:
            try:
                self.run()
            finally:
                os._exit(0)

    def run(self):
        while True:
            client, _ = self.listener.accept()
            with client:
                token = client.recv(64)
                if token == b"stop":
                    return
                known = token == TOKEN.encode()
                socket.send_fds(client, [b"y" if known else b"n"], [self.fd] if known else [])

    def close(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.connect(self.path)
            client.send(b"stop")
        os.waitpid(self.pid, 0)
        self.listener.close()
        os.unlink(self.path)


def uuid_text(uuid):
    digits = uuid.hex()
    return "GPU-" + "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])


def write(name, data):
    path = os.path.join(SCRATCH, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def describe(facts, ready, dtype, shape):
    info = {"device": facts["ordinal"], "uuid": uuid_text(facts["uuid"]), "name": "a \"bytes\": 7", "dtype": dtype,
            "shape": shape, "bytes": ready["bytes"], "offset": ready["offset"]}
    if ready["share"] == IPC:
        return {**info, "share": "ipc", "ipc_handle": ready["handle"].hex()}
    return {**info, "share": "fd", "block": ready["block"], "socket": os.path.join(SCRATCH, "socket"), "token": TOKEN}


def npy(word, shape, data):
    text = repr({"descr": word, "fortran_order": False, "shape": tuple(shape)}).encode()
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + data


@contextlib.contextmanager
def shared(helper, facts, dtype, shape, data, share, count):
    """The path of a file as the mount has it, of a tensor that is not the first in its allocation."""
    first = helper.load(1, "U8", 3, b"abc", share=share)
    ready = helper.load(2, dtype, count, data, share=share)
    desk = Desk(ready["fd"]) if share == FD else None
    try:
        yield write("tensor.json", json.dumps(describe(facts, ready, dtype, shape), indent="\t").encode())
    finally:
        if desk:
            desk.close()
            os.close(ready["fd"])
            os.close(first["fd"])
        helper.release(1)
        helper.release(2)


# ---- the programs --------------------------------------------------------------------------------------------------

def run(words, **changes):
    changes["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # the example leaves them to exit
    done = subprocess.run(words, env=environment(**changes), capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


def both(path, *rest):
    """The two programs' words."""
    return [[EXAMPLE, path, *rest], [sys.executable, MODULE, path, *(["--check", *rest] if rest else [])]]


def check_programs(helper, facts, share):
    good, bad = write("good.npy", npy("<f4", [2, 3], VALUES)), write("bad.npy", npy("<f4", [2, 3], VALUES[:-1] + b"?"))
    long = write("long.npy", npy("<f4", [2, 3], VALUES + b"?"))
    short = write("short.npy", npy("<f4", [2, 3], VALUES[:-1]))
    with shared(helper, facts, "F32", [2, 3], VALUES, share, 6) as path:
        for words in both(path, good):
            code, out, error = run(words)
            check(code == 0 and "equal" in out and "1.5 -2.25 inf" in out and not error, words, code, out, error)
        for file in (bad, long, short):
            for words in both(path, file):
                code, out, error = run(words)
                check(code == 1 and "equal" not in out and not error, words, code, out, error)
        for words in both(path):
            code, out, error = run(words)
            check(code == 0 and not error, words, code, out, error)
        check_other_device(path)
        check_refused(path)


def check_other_device(path):
    """A device that this process does not see, for CUDA_VISIBLE_DEVICES perhaps."""
    with open(path, encoding="ascii") as file:
        info = json.load(file)
    other = write("other.json", json.dumps({**info, "uuid": "GPU-00000000-0000-0000-0000-000000000007"}).encode())
    for words in both(other):
        code, _, error = run(words)
        check(code == 2 and "device" in error and "Traceback" not in error, words, code, error)


def check_refused(path):
    with open(path, encoding="ascii") as file:
        info = json.load(file)
    texts = [b"", b"[]", b"{}", b"{\"bytes\": 3}"]
    texts += [json.dumps({key: value for key, value in info.items() if key != gone}).encode() for gone in
              ("uuid", "dtype", "bytes", "share", "offset")]
    if info["share"] == "fd":
        texts += [json.dumps({**info, "token": "0" * 32}).encode(), json.dumps({**info, "socket": "/nowhere"}).encode()]
    else:
        texts += [json.dumps({**info, "ipc_handle": "00" * 63}).encode()]
    for number, text in enumerate(texts):
        for words in both(write("refused.json", text)):
            code, _, error = run(words)
            check(code == 2 and error and "Traceback" not in error, number, words, code, error)


CALLS = {IPC: ["cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetUuid", "cuDevicePrimaryCtxRetain",
               "cuCtxPushCurrent", "cuIpcOpenMemHandle", "cuMemcpyDtoH", "cuIpcCloseMemHandle", "cuCtxPopCurrent",
               "cuDevicePrimaryCtxRelease"],
         FD: ["cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess", "cuMemUnmap",
              "cuMemAddressFree", "cuMemRelease"]}
NOT_IN_C = ["cuCtxPushCurrent", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease", "cuMemUnmap",
            "cuMemAddressFree"]


SAYS = {"cuMemUnmap": "cuMemAddressFree"}  # what is mapped cannot be given back: the last failure is the one told


def check_failing_calls(helper, facts, share):
    """Each call of the driver's fails once."""
    with shared(helper, facts, "F32", [2, 3], VALUES, share, 6) as path:
        for call in CALLS[share]:
            for words in both(path):
                expected = 0 if words[0] == EXAMPLE and call in NOT_IN_C else 2
                code, _, error = run(words, CKPTFS_STANDIN_FAIL=call + ":0:999")
                check(code == expected and (SAYS.get(call, call) in error or not expected) and "Traceback" not in error,
                      call, words, code, error)
        for words in both(path):
            code, _, error = run(words, CKPTFS_STANDIN_DEVICES="0")
            check(code == 2 and "cuInit" in error, words, code, error)
            code, _, error = run(words, LD_LIBRARY_PATH="/nowhere")
            check(code == 2 and "no CUDA driver" in error or REAL, words, code, error)


# ---- the module, in this process -----------------------------------------------------------------------------------

def open_files():
    return sorted(os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd")
                  if os.path.lexists("/proc/self/fd/" + fd))


def attempt(module, path):
    """What a whole use gives: the bytes, or the exception."""
    try:
        with module.open(path) as tensor:
            return tensor.read()
    except module.GpuError as error:
        return error


def check_leaks(module, helper, facts, share):
    """The stand-in's memory is descriptors: as many are open after a failure as before."""
    with shared(helper, facts, "F32", [2, 3], VALUES, share, 6) as path:
        before = open_files()
        check(attempt(module, path) == VALUES and open_files() == before, "open files", before, open_files())
        for call in CALLS[share] if not REAL else []:
            os.environ["CKPTFS_STANDIN_FAIL"] = call + ":0:999"
            got = attempt(module, path)
            del os.environ["CKPTFS_STANDIN_FAIL"]
            undone = open_files() == before or call in ("cuIpcCloseMemHandle", "cuMemRelease", "cuMemUnmap")
            told = isinstance(got, module.GpuError) and SAYS.get(call, call) in str(got)
            check(told and undone, call, got, before, open_files())
            before = open_files()
        check(attempt(module, path) == VALUES, "after all that failed")


def fake_torch():
    """As much of PyTorch as torch() uses; it keeps what it was given."""
    class Array:
        def __init__(self, view, device):
            self.interface, self.device, self.word = view.__cuda_array_interface__, device, None

        def view(self, word):
            self.word = word
            return self
    return types.SimpleNamespace(as_tensor=lambda view, device: Array(view, device), bfloat16="bfloat16",
                                 float8_e4m3fn="fp8")


def check_views(module, helper, facts):
    sys.modules["torch"] = fake_torch()
    for dtype, data, word, torch_word in (("BF16", b"\x80\x3f\x00\xc0", "<u2", "bfloat16"),
                                          ("F8_E4M3", b"\x38\x40", "|u1", "fp8")):
        with shared(helper, facts, dtype, [2, 1], data, IPC, 2) as path, module.open(path) as tensor:
            interface = tensor.__cuda_array_interface__
            check(interface["shape"] == (2, 1) and interface["typestr"] == word and interface["data"][1] is True,
                  interface)
            check(interface["data"][0] == tensor.ptr and tensor.ptr % 256 == 0 and tensor.ptr, interface)
            array = tensor.torch()
            check(array.word == torch_word and array.device == "cuda:%d" % facts["ordinal"], array.word, array.device)
            check(array.interface["typestr"] == word.replace("<u", "<i") and array.interface["data"][1] is False,
                  array.interface)
            check(tensor.read(1, 1) == data[1:2] and tensor.read() == data, dtype)
            if numpy:
                array = tensor.numpy()
                check(array.tobytes() == data and array.shape == (2, 1) and array.dtype == word, array)
            for off, size in ((-1, 1), (0, len(data) + 1), (len(data), 1)):
                try:
                    tensor.read(off, size)
                    check(False, "read", off, size)
                except ValueError:
                    check(True)
        try:
            tensor.read()
            check(False, "read of a closed tensor")
        except module.GpuError as error:
            check("closed" in str(error), error)
    del sys.modules["torch"]


def check_kinds(module, helper, facts):
    """bfloat16 beside the .npy's float32, packed ones beside raw bytes, none at all, a scalar."""
    wide = write("wide.npy", npy("<f4", [2], b"\0\0\x80\x3f\0\0\x00\xc0"))
    with shared(helper, facts, "BF16", [2], b"\x80\x3f\x00\xc0", IPC, 2) as path:
        check(run(both(path, wide)[1])[0] == 0, "BF16 widened")
        other = write("wide.npy", npy("<f4", [2], b"\0\0\x80\x3f\1\0\x00\xc0"))
        check(run(both(path, other)[1])[0] == 1, "BF16 differs")
    with shared(helper, facts, "F8_E5M2", [2], b"\1\2", IPC, 2) as path:
        code, _, error = run(both(path, wide)[1])
        check(code == 2 and "raw/tensors" in error, code, error)
        check(run(both(path, write("raw.bin", b"\1\2"))[1])[0] == 0, "raw bytes")
    with shared(helper, facts, "F6_E2M3", [4], b"abc", IPC, 4) as path, module.open(path) as tensor:
        check(tensor.read() == b"abc" and tensor.array_shape() == (3,), "packed")
    with shared(helper, facts, "F32", [0, 5], b"", IPC, 0) as path:
        check(run(both(path, write("none.npy", npy("<f4", [0, 5], b"")))[1])[0] == 0, "no elements")
        check(run(both(path)[0])[0] == 0, "no elements, in C")
    with shared(helper, facts, "I64", [], struct.pack("<q", -7), FD, 1) as path, module.open(path) as tensor:
        check(tensor.shape == () and tensor.read() == struct.pack("<q", -7), "scalar")
        check(not numpy or int(tensor.numpy()) == -7, "scalar, NumPy")


def main():
    if not os.access(talk.HELPER, os.X_OK) or not os.access(EXAMPLE, os.X_OK):
        print("no ckptfs-gpu: skipped")
        return 77
    if not REAL:
        import ctypes
        ctypes.CDLL(os.path.join(talk.STANDIN, "libcuda.so.1"))  # found by its name from now on
    import ckptfs_gpu
    try:
        with talk.Helper() as helper:
            facts = helper.hello("" if REAL else "1")
            for share in (IPC, FD):
                check_programs(helper, facts, share)
                if not REAL:
                    check_failing_calls(helper, facts, share)
                check_leaks(ckptfs_gpu, helper, facts, share)
            check_views(ckptfs_gpu, helper, facts)
            check_kinds(ckptfs_gpu, helper, facts)
            check(helper.info()[2] == 0, "something is left on the device")
    finally:
        shutil.rmtree(SCRATCH)
    print("%d checks, %d faults" % (checks, faults))
    return 1 if faults or checks < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
