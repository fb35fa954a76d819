#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a terminal: progress that comes and goes, a clean stop at SIGINT, names that cannot drive the terminal."""
import hashlib
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile

from cli import CKPT, Faults, ckpt

ERASE = b"\r\033[K"


def sealed_zeros(path, chunks, chunk):
    """An envelope around zeros, as a file with a hole: big, and made at once."""
    digest = hashlib.sha256(bytes(chunk)).digest()
    used = 200 + 32 * chunks
    header = struct.pack("<8s8Q", b"ALPHACKP", 1, -(-used // 4096) * 4096, chunks * chunk, chunk, chunks, 0, 0, 0)
    header += bytes(128) + digest * chunks
    header += bytes(-len(header) % 4096)
    with open(path, "wb") as stream:
        stream.write(header)
        stream.truncate(len(header) + chunks * chunk)


def named_tensor(path, name):
    header = json.dumps({name: {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(header)) + header + b"x")


def read_terminal(fd):
    try:
        return os.read(fd, 65536)
    except OSError:  # EIO: nobody has it open any more
        return b""


def on_terminal(arguments, stream, stop_with=None):
    """Runs ckpt with `stream` (stdout or stderr) on a terminal: (exit code, what the terminal got, the other one).
    stop_with is sent as soon as the terminal got something."""
    ours, theirs = pty.openpty()
    other = "stderr" if stream == "stdout" else "stdout"
    done = subprocess.Popen([CKPT, *arguments], stdin=subprocess.DEVNULL,
                            **{stream: theirs, other: subprocess.PIPE})
    os.close(theirs)
    got = b""
    while True:
        piece = read_terminal(ours)
        if not piece:
            break
        if stop_with and not got:
            done.send_signal(stop_with)
        got += piece
    rest = done.communicate()[0 if other == "stdout" else 1]
    os.close(ours)
    return done.returncode, got, rest


def check_progress(faults, folder):
    path = os.path.join(folder, "big.ckpt")
    sealed_zeros(path, 64, 1 << 20)
    code, got, out = on_terminal(["verify", path], "stderr")
    faults.check(code == 0 and out.startswith(b"accepted\n"), "verify: exit %d, %s" % (code, out))
    faults.check(b" %" in got and got.endswith(ERASE), "the progress is not drawn or not erased: %r" % got)
    code, got, out = on_terminal(["verify", "-q", path], "stderr")
    faults.check(code == 0 and got == b"" and out == b"accepted\n", "verify -q: %d %r %r" % (code, got, out))
    code, out, err = ckpt("verify", path)
    faults.check(code == 0 and err == "", "progress in a pipe: %r" % err)
    for command in (["extract", path, os.path.join(folder, "out"), "envelope/payload.bin"], ["diff", path, path]):
        code, got, out = on_terminal(command, "stderr")
        faults.check(code == 0 and out == b"" and b" %" in got and got.endswith(ERASE),
                     "%s: exit %d, %r" % (command[0], code, got))
    code, got, out = on_terminal(["diff", "-q", path, path], "stderr")
    faults.check(code == 0 and got == b"" and out == b"", "diff -q: %d %r %r" % (code, got, out))


def check_stop(faults, folder):
    path = os.path.join(folder, "endless.ckpt")
    sealed_zeros(path, 4096, 64 << 20)  # 256 GB: minutes, if it did not stop
    for number in (signal.SIGINT, signal.SIGTERM):
        for command in (["verify", path], ["extract", path, os.path.join(folder, "none")], ["diff", path, path]):
            code, got, out = on_terminal(command, "stderr", number)
            faults.check(code == 128 + number and out == b"", "%s, signal %d: exit %d, %r" % (
                command[0], number, code, out))
            faults.check(ERASE in got, "%s, signal %d leaves the progress: %r" % (command[0], number, got))
    faults.check(not any("none" in name for name in os.listdir(folder)), "a stopped extract leaves something")


def check_names(faults, folder):
    path = os.path.join(folder, "odd.safetensors")
    named_tensor(path, "w\u0085\u009b31m\u00e9")
    code, got, _ = on_terminal(["ls", path], "stdout")
    faults.check(code == 0 and b"tensors/w\\302\\205\\302\\23331m\xc3\xa9.npy" in got, "ls on a terminal: %r" % got)
    code, out, _ = ckpt("ls", path)
    faults.check(code == 0 and b"tensors/w\xc2\x85\xc2\x9b31m\xc3\xa9.npy\n" in out, "ls in a pipe: %r" % out)
    other = os.path.join(folder, "other.safetensors")
    named_tensor(other, "v")
    code, got, _ = on_terminal(["diff", path, other], "stdout")
    faults.check(code == 1 and b"tensors/w\\302\\205\\302\\23331m\xc3\xa9  U8" in got, "diff on a terminal: %r" % got)
    code, out, _ = ckpt("diff", path, other)
    faults.check(code == 1 and b"tensors/w\xc2\x85\xc2\x9b31m\xc3\xa9  U8" in out, "diff in a pipe: %r" % out)


def main():
    for number in (signal.SIGINT, signal.SIGTERM):  # who runs the tests may ignore them, and children would inherit that
        signal.signal(number, signal.SIG_DFL)
    faults = Faults()
    with tempfile.TemporaryDirectory() as folder:
        check_progress(faults, folder)
        check_stop(faults, folder)
        check_names(faults, folder)
    return faults.finish(10)


if __name__ == "__main__":
    sys.exit(main())
