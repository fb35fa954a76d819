#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in ckptfs-gpu, the driver (the stand-in) or the conversation: each has a clear end."""
import errno
import os
import socket
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import talk
from talk import BEGIN, DENSE, END, F16, F32, FD, FILL, HALF, HELLO, INFO, IPC, MEMORY, Q4, RELEASE, Gone, Helper, Refused, frame, peek

BLOCK = 2 << 20
checks = faults = 0


def check(holds, *words):
    global checks, faults
    checks += 1
    if not holds:
        faults += 1
        print("fault:", *words)


def refused(code, words, call, *arguments, **named):
    """call() is answered with that errno and a text that holds the words; the text."""
    try:
        call(*arguments, **named)
    except Refused as error:
        check(error.errno == code and words in error.text, "want %s, %r: got %s" % (errno.errorcode[code], words, error))
        return error.text
    except Gone:
        check(False, "the helper is gone, no", words)
        return ""
    check(False, "not refused:", words)
    return ""


def gone(helper, words=""):
    """The helper ends the conversation, and ends."""
    try:
        helper.receive()
        check(False, "a reply instead of the end", words)
    except Gone:
        check(True)
    except Refused as error:
        check(False, "a complaint instead of the end", error, words)
    check(helper.close() == 0, "exit code", words)


def started(**changes):
    helper = Helper(**changes)
    return helper, helper.hello()


# ---- the driver -----------------------------------------------------------------------------------------


def check_no_driver():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "libcuda.so.1"), "wb"):
            pass  # the loader looks no further
        with Helper(LD_LIBRARY_PATH=folder) as helper:
            refused(errno.ENODEV, "no CUDA driver: ", helper.hello)
            gone(helper, "no driver")
    with Helper(CKPTFS_STANDIN_DEVICES="0") as helper:
        refused(errno.ENODEV, "cuInit: CUDA_ERROR_NO_DEVICE (100)", helper.hello)
        gone(helper, "no device")


def check_selectors():
    for selector, ordinal in (("", 0), ("0", 0), ("1", 1), ("0000:02:00.0", 1),
                              ("GPU-5ad10000-0000-0000-0000-000000000001", 1),
                              ("gpu-5AD10000-0000-0000-0000-000000000000", 0)):
        helper, facts = started()
        with helper:
            pass
        with Helper() as helper:
            facts = helper.hello(selector)
            check(facts["ordinal"] == ordinal and facts["name"] == "Stand-in %d" % ordinal, selector, facts)
            check(facts["uuid"][:2] == b"\x5a\xd1" and facts["uuid"][15] == ordinal, selector, facts)
            check(facts["driver"] == 12040 and facts["granule"] == BLOCK and facts["total"] == 1 << 30, facts)
    for selector in ("2", "99999999999999999999", "GPU-5ad1", "GPU-5ad10000-0000-0000-0000-000000000002",
                     "0000:09:00.0", "first"):
        with Helper() as helper:
            refused(errno.ENODEV, "no device " + selector, helper.hello, selector)
            gone(helper, selector)


def check_hello_failures():
    """Each call that a hello makes, failing once: its name is told, and the helper ends."""
    for call in ("cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                 "cuStreamCreate", "cuEventCreate", "cuDriverGetVersion", "cuDeviceGetUuid", "cuDeviceGetName",
                 "cuMemGetInfo"):
        for result, code in (("2", errno.ENOMEM), ("46", errno.ENODEV), ("999", errno.EIO)):
            with Helper(CKPTFS_STANDIN_FAIL="%s:1:%s" % (call, result)) as helper:
                text = refused(code, call, helper.hello)
                check("(%s)" % result in text, call, text)
                gone(helper, call)
    helper, facts = started(CKPTFS_STANDIN_FAIL="cuMemHostRegister:1:801")
    with helper:
        check(facts["pinned"] == 0, "pinned all the same")
        check(peek(helper.load(1, "U8", 5, b"hello")) == b"hello", "without pinning")
    helper, facts = started(CKPTFS_STANDIN_FAIL="cuGetProcAddress:0:500")
    with helper:  # every call by its symbol
        check(peek(helper.load(1, "U8", 5, b"hello")) == b"hello", "without cuGetProcAddress")


LOAD_CALLS = (  # (call, share, encoding, at which request it fails)
    ("cuMemAlloc", IPC, "F32", BEGIN), ("cuMemCreate", FD, "F32", BEGIN), ("cuMemAddressReserve", FD, "F32", BEGIN),
    ("cuMemMap", FD, "F32", BEGIN), ("cuMemSetAccess", FD, "F32", BEGIN),
    ("cuMemGetAllocationGranularity", FD, "F32", BEGIN), ("cuMemcpyHtoDAsync", IPC, "F32", FILL),
    ("cuEventRecord", IPC, "F32", FILL), ("cuEventSynchronize", FD, "F32", FILL),
    ("cuStreamSynchronize", IPC, "F32", END), ("cuIpcGetMemHandle", IPC, "F32", END),
    ("cuMemExportToShareableHandle", FD, "F32", END),
)
CONVERT_CALLS = (("cuMemAlloc:2", IPC, BEGIN), ("cuLaunchKernel:1", IPC, FILL), ("cuLaunchKernel:1", FD, FILL))


def load(helper, share, target=0):
    """At which request it fails, and how; loads without a fault are (0, None)."""
    data = bytes(range(256)) * 1024
    at = BEGIN
    try:
        helper.begin(9, "F32", len(data) // 4, len(data), target=target, share=share)
        at = FILL
        helper.fill(9, data)
        at = END
        ready = helper.end(9)
    except Refused as error:
        return at, error
    if target == 0:
        check(peek(ready) == data, "what was loaded after a fault")
    elif ready["fd"] >= 0:
        os.close(ready["fd"])
    helper.release(9)
    return 0, None


def check_load_failures(converts):
    """Once failed, told, and the next try works; nothing stays taken."""
    rows = [(call + ":1", share, at, 0) for call, share, _, at in LOAD_CALLS]
    if converts:
        rows += [(call, share, at, F16) for call, share, at in CONVERT_CALLS]
    for call, share, wanted, target in rows:
        for result, code in (("2", errno.ENOMEM), ("100", errno.ENODEV), ("1", errno.EIO)):
            helper, _ = started(CKPTFS_STANDIN_FAIL="%s:%s" % (call, result))
            with helper:
                at, error = load(helper, share, target)
                name = call.split(":")[0]
                check(at == wanted and error and error.errno == code and name in error.text and error.id in (9, 0),
                      call, result, at, error)
                total, free, taken = helper.info()
                check(free == total and taken == 0, call, "leaves", total - free, taken)
                check(load(helper, share, target) == (0, None), call, "again")
                check(helper.info()[2] == 0, call)


def check_broken_context():
    for call in ("cuMemcpyHtoDAsync", "cuEventSynchronize", "cuStreamSynchronize"):
        helper, _ = started(CKPTFS_STANDIN_FAIL=call + ":1:719")
        with helper:
            helper.begin(1, "U8", 4, 4)
            try:
                helper.fill(1, b"abcd")
                helper.end(1)
                check(False, call, "does not fail")
            except Refused as error:
                check(error.errno == errno.EIO and "CUDA_ERROR_LAUNCH_FAILED (719)" in error.text, error)
            gone(helper, call)


def check_kernels(converts):
    helper, facts = started(CKPTFS_STANDIN_FAIL="cuModuleLoadData:0:200")
    with helper:
        check(facts["converts"] == 0 and facts["lack"], facts)
        if converts:
            check("PTX: CUDA_ERROR_INVALID_IMAGE (200)" in facts["lack"], facts)
        refused(errno.EOPNOTSUPP, facts["lack"], helper.begin, 1, "F32", 32, 20, encoding=Q4)
        refused(errno.EOPNOTSUPP, facts["lack"], helper.begin, 1, "BF16", 32, 64, target=F16)
        check(peek(helper.load(1, "BF16", 2, b"abcd")) == b"abcd", "as stored needs no kernels")
        check(peek(helper.load(2, "I32", 1, b"abcd", target=F16)) == b"abcd", "integers need no kernels")
    if converts:
        helper, facts = started(CKPTFS_STANDIN_FAIL="cuModuleGetFunction:3:500,cuModuleGetFunction:5:500")
        with helper:  # both images lack one: none of their kernels is used
            check(facts["converts"] == 0 and "cuModuleGetFunction ckpt_f16" in facts["lack"], facts)
            refused(errno.EOPNOTSUPP, facts["lack"], helper.begin, 1, "F32", 1, 4, target=F16)
        for fail in ("cuModuleLoadData:1:222", "cuModuleGetFunction:3:500"):  # then the PTX is taken
            helper, facts = started(CKPTFS_STANDIN_FAIL=fail)
            with helper:
                check(facts["converts"] == 1 and not facts["lack"], fail, facts)
                check(peek(helper.load(1, "BF16", 2, b"\x80\x3f\x00\x40", target=F16)) == b"\x00\x3c\x00\x40", fail)


def check_memory(converts):
    helper, facts = started(CKPTFS_STANDIN_MEMORY=str(4 * BLOCK))
    with helper:
        check(facts["total"] == 4 * BLOCK, facts)
        for share in (IPC, FD):
            refused(errno.ENOMEM, "cuMem", helper.begin, 1, "U8", 5 * BLOCK, 5 * BLOCK, share=share)
            refused(errno.ENOMEM, "", helper.begin, 1, "U8", 1 << 63, 1 << 63, share=share)
            check(helper.info() == (4 * BLOCK, 4 * BLOCK, 0), helper.info())
            check(helper.begin(1, "U8", 3 * BLOCK + 1, 3 * BLOCK + 1, share=share)[1] == 4 * BLOCK, "taken")
            check(helper.info() == (4 * BLOCK, 0, 4 * BLOCK), helper.info())
            check(helper.release(1) == 4 * BLOCK, "a load can be released half way")
            refused(errno.ECANCELED, "tensor 1 ", helper.end, 1)
    # What a conversion needs besides: a half of the window, or all of a quantized tensor.
    for blocks, encoding, size in ((3, DENSE, 3 * BLOCK // 2), (3, Q4, 3 * BLOCK // 4 // 32 * 20)) if converts else ():
        dtype = "F32" if encoding else "BF16"
        for more, given in ((0, errno.ENOMEM), (1, 0)):
            helper, _ = started(CKPTFS_STANDIN_MEMORY=str((blocks + more) * BLOCK))
            with helper:
                arguments = 1, dtype, blocks * BLOCK // 4, size, encoding, F32
                if given:
                    refused(given, "to convert from", helper.begin, *arguments)
                    check(helper.info() == (blocks * BLOCK, blocks * BLOCK, 0), helper.info())
                else:
                    check(helper.begin(*arguments)[1] == blocks * BLOCK, "taken")
                    check(helper.info() == ((blocks + 1) * BLOCK, 0, blocks * BLOCK), helper.info())


def check_sharing():
    """Small tensors live together, large ones alone, and none sees another's bytes."""
    for share in (IPC, FD):
        helper, _ = started()
        with helper:
            ready, content = {}, {}
            for tensor in range(40):
                content[tensor] = bytes([tensor]) * (1 + tensor * 2000)
                taken = helper.begin(tensor, "U8", len(content[tensor]), len(content[tensor]), share=share)[1]
                check(taken == (BLOCK if tensor == 0 else 0), tensor, taken)
                helper.fill(tensor, content[tensor])
                ready[tensor] = helper.end(tensor)
            check(len({row["offset"] for row in ready.values()}) == 40, "offsets repeat")
            check(helper.info()[2] == BLOCK, helper.info())
            large = helper.load(50, "U8", BLOCK // 2 + 1, bytes(BLOCK // 2 + 1), share=share)
            check(large["offset"] == 0 and large["block"] == BLOCK and helper.info()[2] == 2 * BLOCK, large)
            larger = helper.load(51, "U8", BLOCK + 1, b"l" * (BLOCK + 1), share=share)
            beside = helper.load(52, "U8", 5, b"small", share=share)
            check(peek(larger, keep=True) == b"l" * (BLOCK + 1) and peek(beside) == b"small", "beside a large one")
            check(larger["block"] == 2 * BLOCK and helper.release(51) == 2 * BLOCK, larger)
            check(helper.release(52) == 0, "the small one stayed with the others")
            if share == IPC:
                check({row["handle"] for row in ready.values()} == {ready[0]["handle"]}, "handles differ")
                check(large["handle"] != ready[0]["handle"], "a large tensor shares its block")
            for tensor, row in ready.items():
                check(row["offset"] % 256 == 0 and peek(row, keep=True) == content[tensor], tensor)
            check(helper.load(60, "U8", 1, b"x", share=1 - share)["offset"] == 0, "ipc and fd share a block")
            check(helper.release(60) == BLOCK, "the other kind's block")
            for tensor in range(40):
                check(helper.release(tensor) == (BLOCK if tensor == 39 else 0), tensor)
            refused(errno.EINVAL, "no tensor 39", helper.release, 39)
            if share == FD:  # whoever has the descriptor keeps the memory
                check(peek(ready[7]) == content[7], "after the release")
            check(helper.release(50) == BLOCK and helper.info()[2] == 0, "the large one")


# ---- the conversation -----------------------------------------------------------------------------------


def hello_frame(half=HALF, selector=b""):
    return frame(HELLO, struct.pack("<IH", half, len(selector)) + selector)


BEGIN_GOOD = struct.pack("<QQQBBBB", 1, 8, 32, 0, 0, 0, 0)
GARBAGE = {
    "nothing but a version": b"\x01\x00", "one byte": b"\x01", "another version": frame(INFO, version=2),
    "version 0": frame(INFO, version=0), "no such type": frame(64), "type 0": frame(0), "a reply": frame(MEMORY),
    "a reply in full": frame(MEMORY, bytes(24)), "text": b"GET / HTTP/1.1\r\n\r\n",
    "bytes left over": frame(INFO, b"\0"), "too short": frame(BEGIN, BEGIN_GOOD[:-1]),
    "too long": frame(BEGIN, BEGIN_GOOD + b"\0"), "no body": frame(FILL),
    "dtype": frame(BEGIN, struct.pack("<QQQBBBB", 1, 8, 32, 23, 0, 0, 0)),
    "encoding": frame(BEGIN, struct.pack("<QQQBBBB", 1, 8, 32, 0, 3, 0, 0)),
    "target": frame(BEGIN, struct.pack("<QQQBBBB", 1, 8, 32, 0, 0, 4, 0)),
    "share": frame(BEGIN, struct.pack("<QQQBBBB", 1, 8, 32, 0, 0, 0, 2)),
    "fewer bytes": frame(BEGIN, struct.pack("<QQQBBBB", 1, 8, 31, 0, 0, 0, 0)),
    "more bytes": frame(BEGIN, struct.pack("<QQQBBBB", 1, 8, 33, 0, 0, 0, 0)),
    "an overflow": frame(BEGIN, struct.pack("<QQQBBBB", 1, 1 << 62, 0, 0, 0, 0, 0)),
    "half a byte": frame(BEGIN, struct.pack("<QQQBBBB", 1, 1, 0, 20, 0, 0, 0)),
    "quantized integers": frame(BEGIN, struct.pack("<QQQBBBB", 1, 32, 20, 3, 1, 0, 0)),
    "no third half": frame(FILL, struct.pack("<QQIB", 1, 0, 256, 2)),
    "a fill of nothing": frame(FILL, struct.pack("<QQIB", 1, 0, 0, 0)),
    "memory of nothing": frame(7, struct.pack("<QQB", 1, 0, 0)),
    "1025 bytes": frame(INFO, bytes(1021)), "60000 bytes": frame(INFO, bytes(59996)),
}


def check_garbage():
    for greeted in (False, True):
        for name, data in GARBAGE.items():
            with Helper() as helper:
                if greeted:
                    helper.hello()
                helper.send(data)
                complaint = refused(errno.EINVAL, "", helper.receive)
                check(complaint, name)
                if greeted and name == "a reply in full":
                    continue  # a sound frame: refused, no more
                gone(helper, name)
    for name, data, fds in (("no window", hello_frame(), 0), ("two windows", hello_frame(), 2),
                            ("half", hello_frame(half=HALF + 1), 1), ("no half", hello_frame(half=0), 1),
                            ("a large half", hello_frame(half=(1 << 30) + 4096), 1),
                            ("a selector's newline", hello_frame(selector=b"0\n"), 1),
                            ("a selector cut", hello_frame(selector=b"00")[:-1], 1),
                            ("a selector of 256", hello_frame(selector=b"0" * 256), 1),
                            ("info with a descriptor", frame(INFO), 1)):
        with Helper() as helper:
            helper.send(data, [helper.memfd] * fds)
            refused(errno.EINVAL, "", helper.receive)
            gone(helper, name)
    for kind, body in ((BEGIN, BEGIN_GOOD), (INFO, b""), (END, bytes(8)), (RELEASE, bytes(8))):
        with Helper() as helper:
            refused(errno.EINVAL, "before the hello", helper.ask, kind, body)
            gone(helper, "before the hello")


def check_window():
    with Helper() as helper, tempfile.TemporaryFile() as plain:
        plain.truncate(2 * HALF)
        refused(errno.EINVAL, "no sealed memfd", helper.hello, memfd=plain.fileno())
        gone(helper)
    for size, seals, words in ((2 * HALF, 0, "no sealed memfd"), (2 * HALF - 4096, talk.SEALS, "has 126976 bytes")):
        with Helper() as helper:
            memfd = os.memfd_create("window", os.MFD_ALLOW_SEALING)
            os.ftruncate(memfd, size)
            talk.fcntl.fcntl(memfd, 1033, seals)
            refused(errno.EINVAL, words, helper.hello, memfd=memfd)
            os.close(memfd)
            gone(helper)
    helper, _ = started()
    with helper:
        refused(errno.EINVAL, "second hello", helper.hello)
        check(helper.info()[2] == 0, "a second hello ends nothing")


def check_wrong_fills():
    helper, _ = started()
    with helper:
        for off, size, words in ((256, 256, "256 more come for offset 256"), (0, 255, "255 more"), (0, HALF + 256, ""),
                                 (0, 100256, "100256 more")):
            helper.begin(1, "U8", 100000, 100000)
            helper.send(frame(FILL, struct.pack("<QQIB", 1, off, size, 0)))
            refused(errno.EINVAL, words, helper.receive)
            refused(errno.ECANCELED, "tensor 1 is not being loaded", helper.end, 1)
        helper.begin(1, "U8", 100000, 100000)
        helper.fill(1, bytes(512))
        refused(errno.EINVAL, "ends after 512 of 100000", helper.end, 1)
        helper.begin(1, "U8", 512, 512)
        refused(errno.EINVAL, "while 1 is being loaded", helper.begin, 2, "U8", 1, 1)
        helper.fill(1, bytes(512))
        helper.send_fill(1, 512, b"x", 0)
        refused(errno.EINVAL, "512 of 512", helper.receive)
        for half in (0, 1):  # both on their way when the first fails
            helper.send_fill(1, 0, b"x", half)
        for _ in (0, 1):
            refused(errno.ECANCELED, "tensor 1 ", helper.receive)
        helper.load(1, "U8", 1, b"x")
        refused(errno.EINVAL, "begun again", helper.begin, 1, "U8", 1, 1)
        refused(errno.ECANCELED, "tensor 1 ", helper.end, 1)
        refused(errno.EINVAL, "no tensor 2", helper.release, 2)
        check(helper.release(1) == BLOCK and helper.info()[2] == 0, "all are gone")


def check_wrong_moves():
    """What is wrong with memory that is made, written or read leaves it where it is."""
    helper, _ = started(CKPTFS_STANDIN_FAIL="cuMemsetD8Async:3:1,cuMemcpyDtoHAsync:2:1,cuMemcpyHtoDAsync:3:1")
    with helper:
        helper.make(1, 100)
        helper.make(2, 100, FD)
        refused(errno.EIO, "cuMemsetD8Async of 100 bytes: CUDA_ERROR_INVALID_VALUE (1)", helper.make, 3, 100)
        refused(errno.EINVAL, "no tensor 3", helper.release, 3)
        helper.write(1, 0, b"first")
        check(helper.read(1, 0, 5) == b"first", "read")
        refused(errno.EIO, "cuMemcpyDtoHAsync of 5 bytes", helper.read, 1, 0, 5)
        check(helper.read(1, 0, 5) == b"first", "read after a fault")
        helper.write(1, 95, b"12345")
        refused(errno.EIO, "cuMemcpyHtoDAsync of 5 bytes", helper.write, 1, 0, b"fault")
        refused(errno.EINVAL, "made again", helper.make, 1, 5)
        refused(errno.EINVAL, "has 100 bytes", helper.write, 1, 96, b"12345")
        refused(errno.EINVAL, "has 100 bytes", helper.read, 1, 101, 1)
        refused(errno.EINVAL, "has 100 bytes", helper.read, 1, (1 << 64) - 1, 5)
        refused(errno.EINVAL, "no memory 9", helper.read, 9, 0, 1)
        refused(errno.EINVAL, "no memory 9", helper.write, 9, 0, b"x")
        helper.begin(5, "U8", 10, 10)
        refused(errno.EINVAL, "being loaded", helper.write, 5, 0, b"x")
        helper.fill(5, b"0123456789")
        helper.end(5)
        check(helper.read(5, 0, 10) == b"0123456789" and helper.read(1, 0, 5) == b"first", "what was there")
        refused(errno.ENOMEM, "cuMemAlloc", helper.make, 6, 1 << 40)


def check_ending():
    """The helper ends with the socket: idle, in the middle of a load, and out of a call that hangs."""
    helper, _ = started()
    check(helper.close() == 0, "idle")
    helper, _ = started()
    helper.begin(1, "U8", 1 << 20, 1 << 20)
    check(helper.close() == 0, "half way")
    for call in ("cuInit", "cuMemcpyHtoDAsync", "cuStreamSynchronize"):
        helper = Helper(CKPTFS_STANDIN_FAIL=call + ":1:hang")
        if call == "cuInit":
            helper.send(hello_frame(), [helper.memfd])
        else:
            helper.hello()
            helper.begin(1, "U8", 1, 1)
            helper.send_fill(1, 0, b"x", 0)
            helper.send(frame(END, struct.pack("<Q", 1)))
        check(helper.close() == 0, "hanging in", call)
    helper = Helper(CKPTFS_STANDIN_FAIL="cuMemAlloc:1:die")
    helper.hello()
    try:
        helper.begin(1, "U8", 1, 1)
        check(False, "it lives")
    except Gone:
        check(helper.close() == 9, "dead")


def pages(helper):
    """What the helper has mapped or reserved."""
    with open("/proc/%d/statm" % helper.pid, encoding="ascii") as stream:
        return int(stream.read().split()[0])


def check_descriptors():
    """Nothing of the daemon's stays open in the helper, whatever was inherited."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    helper, _ = started()
    os.close(write)
    check(os.read(read, 1) == b"", "a descriptor was kept")
    check(os.readlink("/proc/%d/cwd" % helper.pid) == "/", "the folder was kept")
    helper.info()  # then it is done with the hello
    table = "/proc/%d/fd" % helper.pid
    check(not any("memfd:window" in os.readlink(os.path.join(table, fd)) for fd in os.listdir(table)), "the window's")
    before = len(os.listdir(table))
    mapped = pages(helper)
    for _ in range(20):
        os.close(helper.load(1, "U8", 1, b"x", share=FD)["fd"])
        helper.release(1)
    helper.info()
    check(len(os.listdir(table)) == before, "descriptors pile up")
    check((pages(helper) - mapped) * 4096 < 10 * BLOCK, "addresses pile up")
    helper.close()
    os.close(read)


def check_program():
    done = subprocess.run([talk.HELPER], capture_output=True, text=True, check=False)
    check(done.returncode == 1 and "is started by ckptfs" in done.stderr, done)
    done = subprocess.run([talk.HELPER, "--version"], capture_output=True, text=True, check=True)
    check("protocol 1" in done.stdout, done)
    ours, other = socket.socketpair()  # a stream
    pid = os.posix_spawn(talk.HELPER, [talk.HELPER], os.environ,
                         file_actions=[(os.POSIX_SPAWN_DUP2, other.fileno(), 3), (os.POSIX_SPAWN_CLOSE, 2)])
    check(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1, "a stream is no socket pair of ours")
    ours.close()
    other.close()
    needed = subprocess.run(["readelf", "-d", talk.HELPER], capture_output=True, text=True, check=True).stdout
    check("NEEDED" in needed and "cuda" not in needed.lower(), needed)


def main():
    if talk.REAL:
        print("the real driver does not fail on request: skipped")
        return 77
    helper, facts = started()
    with helper:
        converts = bool(facts["converts"])
    check_no_driver()
    check_selectors()
    check_hello_failures()
    check_load_failures(converts)
    check_broken_context()
    check_kernels(converts)
    check_memory(converts)
    check_sharing()
    check_garbage()
    check_window()
    check_wrong_fills()
    check_wrong_moves()
    check_ending()
    check_descriptors()
    check_program()
    print("%d checks, %d faults" % (checks, faults))
    return 1 if faults or checks < 600 else 0


if __name__ == "__main__":
    sys.exit(main())
