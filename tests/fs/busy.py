#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""While readers wait for a terabyte to be verified, everything else answers, the readers can be killed, and the mount
can be taken down."""
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import make

READERS = 300  # more than the kernel lets run in the background by itself, and more than there are buffers

file = lib.path("large.oam")
make.oam_sparse(file, [("big", 1 << 40), ("end", 3)])


def start(words, notify):
    daemon = subprocess.Popen([lib.CKPTFS, "-f", file, lib.MOUNT, "-o", "notify_fd=%d" % notify, *words],
                              pass_fds=[notify])
    os.close(notify)
    return daemon


def await_news(fd):
    with os.fdopen(fd, "rb") as stream:
        lib.want(stream.read() == b"s", "not mounted")


def readers(count):
    """Each at another place: who waits for the same page makes no request. Half of them go around the page cache,
    which the kernel counts otherwise."""
    command = ["dd", "if=%s/raw/tensors/big.bin" % lib.MOUNT, "bs=4M", "count=1", "of=/dev/null", "status=none"]
    return [subprocess.Popen([*command, "skip=%d" % number, *["iflag=direct"][number % 2:]], stderr=subprocess.DEVNULL)
            for number in range(count)]


def stop(processes, number):
    for process in processes:
        process.send_signal(number)
    for process in processes:
        lib.want(process.wait() == -number, "a reader ended with %d", process.returncode)


reading, writing = os.pipe()
daemon = start([], writing)
await_news(reading)
waiting = readers(READERS)
lib.want(len(os.listdir(lib.MOUNT + "/tensors")) == 2, "a listing")
lib.want(os.path.getsize(lib.MOUNT + "/tensors/big.npy") == (1 << 40) + 128, "a size")
for name in ("config.json", "progress.json", "sections/config.bin", "tensors.json", "verify.json"):
    lib.want(isinstance(lib.read(os.path.join(lib.MOUNT, name)), bytes), "%s is not readable", name)
lib.want(all(process.poll() is None for process in waiting), "a reader has ended by itself")
stop(waiting[:READERS // 2], signal.SIGKILL)
stop(waiting[READERS // 2:], signal.SIGTERM)
lib.want(lib.read(lib.MOUNT + "/config.json"), "nothing answers when the readers are gone")

waiting = readers(3)
lib.want(lib.read(lib.MOUNT + "/verify.json"), "verify.json is not readable")
daemon.send_signal(signal.SIGTERM)
lib.want(daemon.wait() == 0, "the daemon ended with %d", daemon.returncode)
for process in waiting:
    lib.want(process.wait() == 1, "a reader ended with %d", process.returncode)
lib.want(not lib.is_mounted(), "still mounted")
lib.finish()
