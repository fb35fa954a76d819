#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt seal` and `ckpt unseal`: golden files byte by byte, a second implementation, refusals, bounded memory.
CKPT_SEED repeats a run."""
import hashlib
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from cli import CKPT, GOLDEN, Faults, ckpt

NAMES = ["schema", "learner", "data", "seed"]
faults = Faults()
OLD = b"what stood there before"


def read(path):
    with open(path, "rb") as stream:
        return stream.read()


def write(path, data):
    with open(path, "wb") as stream:
        stream.write(data)
    return path


def envelope(payload, chunk, identities, updates, invocations):
    """What spec says, written a second time."""
    chunks = [payload[at:at + chunk] for at in range(0, len(payload), chunk)] if payload else []
    full, tail = divmod(len(payload), chunk) if chunk else (0, 0)
    size = -(-(200 + 32 * len(chunks)) // 4096) * 4096
    head = struct.pack("<8s8Q", b"ALPHACKP", 1, size, len(payload), chunk, full, tail, updates, invocations)
    head += b"".join(hashlib.sha256(text.encode()).digest() for text in identities)
    head += b"".join(hashlib.sha256(part).digest() for part in chunks)
    return head.ljust(size, b"\0") + payload


def piped(data, *arguments):
    """As ckpt(), with data coming through a pipe."""
    done = subprocess.run([CKPT, *arguments], input=data, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace")


def by_identities(identities, chunk, updates=3, invocations=4):
    words = [word for name, text in zip(NAMES, identities) for word in ("--" + name, text)]
    return ["seal", *words, "--chunk", str(chunk), "--updates", str(updates), "--invocations", str(invocations)]


def by_contract(contract, updates=3, invocations=4):
    return ["seal", "--contract", contract, "--updates", str(updates), "--invocations", str(invocations)]


class Folder:
    """A folder in which a command either makes `out` whole or leaves it as it was, and nothing besides."""

    def __init__(self, path):
        self.path, self.out = path, os.path.join(path, "out")

    def makes(self, wanted, words, data=None):
        """The command without its last operand; data: what comes through the pipe."""
        write(self.out, OLD)
        code, out, err = ckpt(*words, self.out) if data is None else piped(data, *words, self.out)
        faults.check(code == 0 and not out and not err, words, "exit", code, out, err)
        faults.check(read(self.out) == wanted, words, "pipe" if data is not None else "file", "other bytes")
        self.clean(words)

    def refuses(self, status, pattern, words, data=None):
        for old in (OLD, None):
            if old is None:
                os.unlink(self.out)
            else:
                write(self.out, old)
            code, out, err = ckpt(*words, self.out) if data is None else piped(data, *words, self.out)
            faults.check(code == status and not out, words, "exit", code, "want", status, out, err)
            faults.check(err.startswith("ckpt: ") and re.search(pattern, err), words, "'%s' lacks" % err, pattern)
            there = read(self.out) if os.path.exists(self.out) else None
            faults.check(there == old, words, "the old file is not as it was")
            if old:
                self.clean(words)

    def clean(self, words):
        left = [name for name in os.listdir(self.path) if ".ckpt-" in name]
        faults.check(not left, words, "left", left)


# ---- golden files --------------------------------------------------------------------------------------------------

def golden_writes(folder):
    top = os.path.join(GOLDEN, "envelope", "write")
    for name in os.listdir(top):
        at = lambda file: os.path.join(top, name, file)
        with open(at("spec.json"), encoding="utf-8") as stream:
            spec = json.load(stream)
        with open(at(spec["contract"]), encoding="utf-8") as stream:
            contract = json.load(stream)
        payload, expected = at(spec["payload"]), read(at(spec["expected"]))
        faults.check(hashlib.sha256(expected).hexdigest() == spec["expected_sha256"], name, "is not as it was")
        counters = spec["updates"], spec["invocations"]
        for words in (by_contract(at(spec["contract"]), *counters),
                      by_identities([contract[key] for key in NAMES], contract["chunk_bytes"], *counters)):
            folder.makes(expected, [*words, payload])
            folder.makes(expected, [*words, "-"], read(payload))
        folder.makes(read(payload), ["unseal", "--contract", at(spec["contract"]), at(spec["expected"])])


def resealed(folder, case, path, contract):
    """What the reference accepts comes out, and goes in again to the same bytes."""
    expect, whole = case["expect"], read(path)
    payload = whole[expect["header_bytes"]:]
    folder.makes(payload, ["unseal", "--contract", contract, path])
    folder.makes(payload, ["unseal", "--contract", contract, "--manifest", "sha256:" + expect["header_sha256"], path])
    counters = expect["updates"], expect["invocations"]
    source = write(os.path.join(folder.path, "payload"), payload)
    if os.path.basename(path) == "padding_not_zero.ckpt":  # the contract's verdict overlooks what no writer writes
        used = 200 + 32 * expect["chunk_count"]
        whole = whole[:used] + bytes(expect["header_bytes"] - used) + payload
        folder.refuses(3, "layout", ["unseal", path])
    else:
        folder.makes(payload, ["unseal", path])
    folder.makes(whole, [*by_contract(contract, *counters), source])
    folder.makes(whole, [*by_contract(contract, *counters), "-"], payload)
    code, out, err = ckpt("verify", "-q", "--contract", contract, folder.out)
    faults.check(code == 0 and out == b"accepted\n", path, "sealed again:", out, err)


def golden_cases(folder):
    with open(os.path.join(GOLDEN, "manifest.json"), encoding="utf-8") as stream:
        cases = [case for case in json.load(stream) if case["format"] == "envelope"]
    for case in cases:
        path, contract = os.path.join(GOLDEN, case["file"]), os.path.join(GOLDEN, case["contract"])
        if case["valid"]:
            resealed(folder, case, path, contract)
            folder.refuses(3, "manifest-mismatch: .*sha256:0{64}",
                           ["unseal", "--contract", contract, "--manifest", "sha256:" + "0" * 64, path])
            continue
        words = re.sub(r"(?<=.)(?=[A-Z])", "-", case["error"]).lower() + (" %d" % case["chunk"] if "chunk" in case else "")
        folder.refuses(3, re.escape(path + ": " + words), ["unseal", "--contract", contract, path])
        if ckpt("verify", path)[0] == 3:
            folder.refuses(3, re.escape(path + ": "), ["unseal", path])
    return len(cases)


# ---- a second implementation ---------------------------------------------------------------------------------------

def random_payloads(folder, chance):
    sizes = [(0, 1), (1, 1), (121, 1), (122, 1), (120 * 7 + 3, 7), (121 * 7 + 1, 7), (4096, 4096), (4097, 4096),
             (300000, 1), (600001, 300), (1 << 20, 1 << 18), ((1 << 20) + 1, (1 << 18) - 1), (3 << 20, 1 << 62),
             ((5 << 20) + 17, 1 << 20)]
    sizes += [(chance.randrange(1 << 19), chance.randrange(1, 1 << 12)) for _ in range(10)]
    for size, chunk in sizes:
        payload = chance.randbytes(size)
        texts = ["", "a b", "é\n", "x" * 300]
        chance.shuffle(texts)
        counters = chance.randrange(1 << 64), (1 << 64) - 1
        wanted = envelope(payload, chunk, texts, *counters)
        words = by_identities(texts, chunk, *counters)
        source = write(os.path.join(folder.path, "payload"), payload)
        folder.makes(wanted, [*words, source])
        folder.makes(wanted, [*words, "-"], payload)
        sealed = write(os.path.join(folder.path, "sealed"), wanted)
        folder.makes(payload, ["unseal", sealed])
        if payload:
            bad = bytearray(wanted)
            at = chance.randrange(size)
            bad[len(wanted) - size + at] ^= 1 << chance.randrange(8)
            write(sealed, bad)
            folder.refuses(3, "chunk-mismatch %d: " % (at // chunk), ["unseal", sealed])


def first_of_many_bad(folder, chance):
    payload = chance.randbytes(1 << 21)
    whole = bytearray(envelope(payload, 1 << 13, ["a", "b", "c", "d"], 1, 1))
    bad = sorted(chance.sample(range(256), 30))
    for chunk in bad:
        whole[len(whole) - len(payload) + (chunk << 13) + chance.randrange(1 << 13)] ^= 255
    folder.refuses(3, "chunk-mismatch %d: " % bad[0], ["unseal", write(os.path.join(folder.path, "sealed"), whole)])


def position(folder):
    """Standard input that is a file is read from where it stands."""
    source = write(os.path.join(folder.path, "payload"), b"skipped" + b"payload" * 1000)
    with open(source, "rb") as stream:
        stream.seek(7)
        os.lseek(stream.fileno(), 7, os.SEEK_SET)
        done = subprocess.run([CKPT, *by_identities("abcd", 1000), "-", folder.out], stdin=stream, check=False)
    faults.check(done.returncode == 0 and read(folder.out) == envelope(b"payload" * 1000, 1000, "abcd", 3, 4),
                 "a file at a position")
    folder.makes(envelope(read(source), 9, "abcd", 3, 4), [*by_identities("abcd", 9), source])
    code, _, err = ckpt(*by_identities("abcd", 1000), source, source)
    faults.check(code == 0 and read(source) == envelope(b"skipped" + b"payload" * 1000, 1000, "abcd", 3, 4),
                 "onto itself", err)


# ---- refusals ------------------------------------------------------------------------------------------------------

def contract_file(folder, **changes):
    contract = dict(zip(NAMES, "abcd"), payload_bytes=1000, chunk_bytes=100, updates_per_invocation=0)
    contract.update(changes)
    return write(os.path.join(folder.path, "contract"), json.dumps(contract).encode())


def lengths(folder):
    """A payload of another length than the contract's."""
    words = by_contract(contract_file(folder))
    for size in (0, 999, 1001, 70000):
        source = write(os.path.join(folder.path, "payload"), b"p" * size)
        both = r"^ckpt: (standard input|%s): it has %d bytes.*gives 1000\b" % (re.escape(source), size)
        folder.refuses(3, both, [*words, source])
        folder.refuses(3, both if size < 70000 else r"has \d+ bytes.*gives 1000\b", [*words, "-"], b"p" * size)
    folder.makes(envelope(b"p" * 1000, 100, "abcd", 3, 4), [*words, "-"], b"p" * 1000)
    endless = subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE)
    done = subprocess.run([CKPT, *words, "-", folder.out], stdin=endless.stdout, capture_output=True, check=False)
    endless.stdout.close()
    endless.wait()
    faults.check(done.returncode == 3 and b"gives 1000" in done.stderr, "an endless payload", done)
    with open("/proc/version", "rb") as file:  # states a size of 0
        version = file.read()
    words = by_identities("abcd", 16)
    folder.makes(envelope(version, 16, "abcd", 3, 4), [*words, "/proc/version"])
    words = by_contract(contract_file(folder, payload_bytes=0, chunk_bytes=0))
    folder.makes(envelope(b"", 0, "abcd", 3, 4), [*words, "-"], b"")
    folder.refuses(3, "has 1 bytes.*gives 0", [*words, "-"], b"x")


def wrong_use(folder):
    source = write(os.path.join(folder.path, "payload"), b"p" * 1000)
    whole, contract = by_identities("abcd", 10), contract_file(folder)
    for at in range(1, len(whole), 2):  # each option with its argument
        folder.refuses(1, "option '--[a-z]+' is missing", [*whole[:at], *whole[at + 2:], source])
    for option, value in (("--chunk", "0"), ("--chunk", "4Q"), ("--chunk", "-1"), ("--chunk", ""), ("--chunk", "20000000T"),
                          ("--updates", "1K"), ("--updates", "18446744073709551616"), ("--invocations", "-0"),
                          ("--invocations", "x")):
        folder.refuses(1, re.escape("%s '%s'" % (option, value)), [*whole, option, value, source])
    for option in ("--chunk", "--schema", "--seed"):
        folder.refuses(1, option + " does not go with a contract", [*by_contract(contract), option, "1", source])
    folder.refuses(1, "contract .*chunk_bytes is missing|contract", [*by_contract(source), source])
    folder.refuses(2, "contract .*No such file", [*by_contract(source + ".none"), source])
    folder.refuses(1, "chunk_bytes is 0", [*by_contract(contract_file(folder, chunk_bytes=0)), source])
    folder.refuses(2, "No such file", [*whole, source + ".none"])
    folder.refuses(2, "[Ii]s a directory", [*whole, folder.path])
    folder.refuses(2, "[Ii]s a directory", ["unseal", folder.path])
    folder.refuses(2, "No such file", ["unseal", source + ".none"])
    folder.refuses(1, "manifest 'sha256:0'", ["unseal", "--manifest", "sha256:0", source])
    folder.refuses(3, "no envelope", ["unseal", source])
    folder.refuses(3, "no envelope, but oam", ["unseal", os.path.join(GOLDEN, "oam/valid/transformer_adamw.oam")])


def limits(folder):
    """33 million chunks of one byte in a file of holes: refused before anything is written."""
    source = os.path.join(folder.path, "payload")
    with open(source, "wb") as stream:
        stream.truncate(1 << 30)
    folder.refuses(2, r"1073741824 chunks, at most 33554425\b", [*by_identities("abcd", 1), source])


def memory(folder):
    """A chunk of 256 MiB passes through little memory, from a file and from a pipe."""
    source, size = os.path.join(folder.path, "payload"), 256 << 20
    with open(source, "wb") as stream:
        stream.truncate(size)
    for through in ("file", "pipe"):
        cat = subprocess.Popen(["cat", source], stdout=subprocess.PIPE)
        words = [CKPT, *by_identities("abcd", "1T"), source if through == "file" else "-", folder.out]
        pid = subprocess.Popen(words, stdin=cat.stdout).pid
        cat.stdout.close()
        _, status, usage = os.wait4(pid, 0)
        cat.wait()
        faults.check(status == 0 and os.path.getsize(folder.out) == size + 4096, through, "status", status)
        faults.check(usage.ru_maxrss < 128 << 10, through, "took %d KiB" % usage.ru_maxrss)
    code, out, err = ckpt("verify", "-q", folder.out)
    faults.check(code == 0 and out == b"accepted\n", "256 MiB", out, err)
    os.unlink(folder.out)


def main():
    seed = int(os.environ.get("CKPT_SEED", random.randrange(1 << 32)))
    print("CKPT_SEED=%d" % seed)
    chance = random.Random(seed)
    cases = 0
    # where the file system inserts pages before the payload of a pipe, and where it is moved
    for place in {tempfile.gettempdir(), "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()}:
        with tempfile.TemporaryDirectory(dir=place) as path:
            folder = Folder(path)
            golden_writes(folder)
            cases += golden_cases(folder)
            random_payloads(folder, chance)
            first_of_many_bad(folder, chance)
            position(folder)
            lengths(folder)
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(path)
        wrong_use(folder)
        limits(folder)
        memory(folder)
    faults.check(cases >= 70, "only", cases, "golden files")
    return faults.finish(1000)


if __name__ == "__main__":
    sys.exit(main())
