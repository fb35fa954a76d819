# SPDX-License-Identifier: Apache-2.0
"""Speaks doc/gpu-protocol.md with ckptfs-gpu: written from that page alone, not from src/gpu."""
import array
import errno
import fcntl
import mmap
import os
import select
import socket
import struct
import subprocess

BUILDDIR = os.environ.get("builddir", ".")
HELPER = os.environ.get("CKPTFS_GPU_HELPER") or os.path.join(BUILDDIR, "ckptfs-gpu")
PEEK = os.path.join(BUILDDIR, "tests", "gpu", "peek")
STANDIN = os.path.abspath(os.path.join(BUILDDIR, "tests", "gpu", "standin", ".libs"))
REAL = os.environ.get("CKPTFS_TEST_GPU") == "real"  # the driver of this machine instead of the stand-in

HELLO, BEGIN, FILL, END, RELEASE, INFO, MAKE, WRITE, READ = range(1, 10)
DEVICE, ALLOCATED, FILLED, READY, RELEASED, MEMORY, ERROR, COPIED = range(65, 73)
STORED, F32, F16, BF16 = range(4)
IPC, FD = range(2)
DENSE, Q4, Q8 = range(3)
DTYPES = ["F32", "BF16", "F16", "I8", "I32", "U8", "F64", "I16", "I64", "U16", "U32", "U64", "BOOL", "C64", "C128",
          "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E5M2FNUZ", "F8_E4M3FNUZ", "F4", "F6_E2M3", "F6_E3M2"]
BITS = dict(zip(DTYPES, [32, 16, 16, 8, 32, 8, 64, 16, 64, 16, 32, 64, 8, 64, 128, 8, 8, 8, 8, 8, 4, 6, 6]))
DEADLINE = 120  # seconds; a reply that takes as long is a fault, however slow the machine is
HALF = 64 * 1024
SEALS = 0x1 | 0x2 | 0x4  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW


class Refused(Exception):
    """An ERROR: .id, .errno, .text"""

    def __init__(self, tensor, code, text):
        super().__init__("%s: %s" % (errno.errorcode.get(code, code), text))
        self.id, self.errno, self.text = tensor, code, text


class Gone(Exception):
    """The helper closed the conversation."""


def environment(**changes):
    env = {key: value for key, value in os.environ.items() if not key.startswith("CKPTFS_STANDIN_")}
    if not REAL:
        env["LD_LIBRARY_PATH"] = STANDIN
    env.update(changes)
    return env


def frame(kind, body=b"", version=1):
    return struct.pack("<HH", version, kind) + body


def text(value):
    return struct.pack("<H", len(value)) + value.encode("ascii")


class Helper:
    """A helper process and this end of its socket. `window` is ours, two halves of `half` bytes."""

    def __init__(self, half=HALF, **changes):
        self.half = half
        self.sock, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.posix_spawn(HELPER, [HELPER], environment(**changes),
                                  file_actions=[(os.POSIX_SPAWN_DUP2, other.fileno(), 3)])
        other.close()
        self.memfd = os.memfd_create("window", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.memfd, 2 * half)
        fcntl.fcntl(self.memfd, 1033, SEALS)  # F_ADD_SEALS
        self.window = mmap.mmap(self.memfd, 2 * half)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the conversation; the exit status of the helper, which must end by itself."""
        self.sock.close()
        if self.pid:
            ended = os.pidfd_open(self.pid)
            ready, _, _ = select.select([ended], [], [], DEADLINE)
            os.close(ended)
            if not ready:
                os.kill(self.pid, 9)
                os.waitpid(self.pid, 0)
                raise AssertionError("the helper outlives its socket")
            status = os.waitpid(self.pid, 0)[1]
            self.pid = 0
            self.window.close()
            os.close(self.memfd)
            return os.waitstatus_to_exitcode(status)
        return None

    # ---- frames

    def send(self, data, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([data], rights)

    def receive(self):
        """(type, body, descriptors) of the next reply; an ERROR is raised."""
        ready, _, _ = select.select([self.sock], [], [], DEADLINE)
        if not ready:
            raise AssertionError("no reply")
        try:
            data, rights, flags, _ = self.sock.recvmsg(1024, socket.CMSG_SPACE(8))
        except ConnectionResetError as error:
            raise Gone() from error
        if not data:
            raise Gone()
        fds = array.array("i")
        for _, _, payload in rights:
            fds.frombytes(payload[:len(payload) - len(payload) % fds.itemsize])
        version, kind = struct.unpack_from("<HH", data)
        assert version == 1 and not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
        body = data[4:]
        if kind == ERROR:
            tensor, code, length = struct.unpack_from("<QIH", body)
            assert len(body) == 14 + length
            raise Refused(tensor, code, body[14:].decode("ascii"))
        return kind, body, list(fds)

    def ask(self, kind, body=b"", fds=()):
        self.send(frame(kind, body), fds)
        return self.receive()

    # ---- requests

    def hello(self, selector="", memfd=None):
        _, body, _ = self.ask(HELLO, struct.pack("<I", self.half) + text(selector),
                              [self.memfd if memfd is None else memfd])
        names = ("ordinal", "driver", "total", "free", "granule", "pinned", "converts", "uuid")
        facts = dict(zip(names, struct.unpack_from("<IIQQQBB16s", body)))
        at = struct.calcsize("<IIQQQBB16s")
        for name in ("name", "lack"):
            (length,) = struct.unpack_from("<H", body, at)
            facts[name] = body[at + 2:at + 2 + length].decode("ascii")
            at += 2 + length
        assert at == len(body)
        return facts

    def begin(self, tensor, dtype, elements, size, encoding=DENSE, target=STORED, share=IPC):
        """(bytes on the device, bytes taken, dtype there)"""
        kind, body, _ = self.ask(BEGIN, struct.pack("<QQQBBBB", tensor, elements, size, DTYPES.index(dtype), encoding,
                                                    target, share))
        assert kind == ALLOCATED
        got, size, taken, result = struct.unpack("<QQQB", body)
        assert got == tensor
        return size, taken, DTYPES[result]

    def send_fill(self, tensor, off, data, half):
        self.window[half * self.half:half * self.half + len(data)] = data
        self.send(frame(FILL, struct.pack("<QQIB", tensor, off, len(data), half)))

    def filled(self, tensor):
        kind, body, _ = self.receive()
        got, half = struct.unpack("<QB", body)
        assert kind == FILLED and got == tensor
        return half

    def fill(self, tensor, data, piece=None):
        """All of it, as a client does: one half is written while the other is copied."""
        piece, waiting, half = piece or self.half, 0, 0
        try:
            for off in range(0, len(data), piece):
                if waiting == 2:
                    waiting -= 1
                    assert self.filled(tensor) == half
                self.send_fill(tensor, off, data[off:off + piece], half)
                waiting += 1
                half ^= 1
            while waiting:
                waiting -= 1
                self.filled(tensor)
        except Refused:
            for _ in range(waiting):  # what was on its way has answers of its own
                try:
                    self.filled(tensor)
                    raise AssertionError("filled after an error")
                except Refused as late:
                    assert late.errno == errno.ECANCELED, late
            raise

    def end(self, tensor):
        """{bytes offset block share handle fd}"""
        return self.ready(tensor, *self.ask(END, struct.pack("<Q", tensor)))

    def make(self, tensor, size, share=IPC):
        """Zeros, as end() tells of them."""
        return self.ready(tensor, *self.ask(MAKE, struct.pack("<QQB", tensor, size, share)))

    @staticmethod
    def ready(tensor, kind, body, fds):
        assert kind == READY
        names = ("id", "bytes", "offset", "block", "share", "handle")
        ready = dict(zip(names, struct.unpack("<QQQQB64s", body)))
        assert ready["id"] == tensor and len(fds) == (ready["share"] == FD)
        assert (ready["share"] == IPC) or not any(ready["handle"])
        ready["fd"] = fds[0] if fds else -1
        return ready

    def load(self, tensor, dtype, elements, data, encoding=DENSE, target=STORED, share=IPC, piece=None):
        self.begin(tensor, dtype, elements, len(data), encoding, target, share)
        self.fill(tensor, data, piece)
        return self.end(tensor)

    def write(self, tensor, off, data, half=0):
        self.window[half * self.half:half * self.half + len(data)] = data
        self.copied(tensor, half, *self.ask(WRITE, struct.pack("<QQIB", tensor, off, len(data), half)))

    def read(self, tensor, off, size, half=0):
        self.copied(tensor, half, *self.ask(READ, struct.pack("<QQIB", tensor, off, size, half)))
        return self.window[half * self.half:half * self.half + size]

    @staticmethod
    def copied(tensor, half, kind, body, _):
        assert kind == COPIED and struct.unpack("<QB", body) == (tensor, half)

    def release(self, tensor):
        kind, body, _ = self.ask(RELEASE, struct.pack("<Q", tensor))
        got, given = struct.unpack("<QQ", body)
        assert kind == RELEASED and got == tensor
        return given

    def info(self):
        """(total, free, taken)"""
        kind, body, _ = self.ask(INFO)
        assert kind == MEMORY
        return struct.unpack("<QQQ", body)


def peek(ready, device=0, keep=False):
    """What another process sees of a tensor that is READY; its descriptor is closed unless it is to be kept."""
    how = ["ipc", ready["handle"].hex()] if ready["share"] == IPC else ["fd", str(ready["fd"]), str(ready["block"])]
    done = subprocess.run([PEEK, str(device), *how, str(ready["offset"]), str(ready["bytes"])], env=environment(),
                          capture_output=True, check=False, timeout=DEADLINE,
                          pass_fds=[ready["fd"]] if ready["fd"] >= 0 else [])
    if ready["fd"] >= 0 and not keep:
        os.close(ready["fd"])
    assert done.returncode == 0, done.stderr
    return done.stdout
