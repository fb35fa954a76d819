#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `ckpt seal` wrote mounts as the tree that expected_tree.py says, and verifies, whatever the chunks' size."""
import contextlib
import io
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import expected_tree

CKPT = os.path.join(os.path.dirname(lib.CKPTFS), "ckpt")
IDENTITIES = ["--schema", "a", "--learner", "b", "--data", "c", "--seed", "d", "--updates", "7", "--invocations", "1"]
PAYLOADS = ["oam/valid/transformer_adamw.oam", "oam/valid/v3_kernel_cache.oam", "envelope/accepted/big.ckpt"]
PAYLOADS += ["safetensors/valid/" + name for name in
             sorted(os.listdir(os.path.join(lib.GOLDEN, "safetensors/valid")))[:3] if name.endswith(".safetensors")]
CHUNKS = ["37", "1000", "4K", "1G"]


def seal(payload, chunk, out, piped):
    with open(payload, "rb") as stream:
        cat = subprocess.Popen(["cat"], stdin=stream, stdout=subprocess.PIPE)
    words = [CKPT, "seal", *IDENTITIES, "--chunk", chunk, "-" if piped else payload, out]
    code = subprocess.run(words, stdin=cat.stdout).returncode
    cat.stdout.close()
    cat.wait()
    return code


def check(payload, chunk, piped):
    sealed, report = lib.path("sealed"), io.StringIO()
    lib.want(seal(payload, chunk, sealed, piped) == 0, "%s in chunks of %s: not sealed", payload, chunk)
    done = subprocess.run([CKPT, "verify", "-q", sealed], capture_output=True, text=True)
    lib.want(done.stdout == "accepted\n", "%s: %s%s", payload, done.stdout, done.stderr)
    with lib.mounted(sealed) as mount, contextlib.redirect_stdout(report):
        expected_tree.check(sealed, mount)
    lines = report.getvalue().strip().splitlines()
    lib.want(lines[-1].endswith(" 0 faults"), "%s in chunks of %s: %s", payload, chunk, "\n  ".join(lines[:5]))


for number, name in enumerate(PAYLOADS):
    for chunk in CHUNKS:
        check(os.path.join(lib.GOLDEN, name), chunk, number % 2 == 1)
print("%d envelopes" % (len(PAYLOADS) * len(CHUNKS)))
lib.want(len(PAYLOADS) > 4, "only %d payloads", len(PAYLOADS))
lib.finish()
