#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is no checkpoint, or a broken one, does not mount: exit code 3, a message, and nothing mounted."""
import json
import os
import sys

sys.dont_write_bytecode = True
import lib



def refused(file, *options):
    code, message = lib.run(file, *options)
    lib.want(code == 3, "%s %s: exit code %d: %s", file, options, code, message)
    lib.want(message.startswith("ckptfs: %s: " % file) and "\n" not in message, "%s: says \"%s\"", file, message)
    if lib.is_mounted():
        lib.fault("%s: mounted", file)
        os.system("umount '%s'" % lib.MOUNT)


with open(os.path.join(lib.GOLDEN, "manifest.json")) as stream:
    cases = [case for case in json.load(stream) if not case["valid"] and not case.get("ambiguous")]
for case in cases:
    file = os.path.join(lib.GOLDEN, case["file"])
    options = ["verify=full"]
    if "contract" in case:
        options.append("contract=" + os.path.join(lib.GOLDEN, case["contract"]))
    refused(file, *options)
    if case["format"].startswith("safetensors"):
        refused(file)

LOOKALIKES = {
    "empty": b"",
    "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n",
    "page.html": b"<!DOCTYPE html><html><body>404</body></html>",
    "pickle.pt": b"\x80\x02}q\x00.",
    "text": b"hello, world\n" * 100,
}
for name, data in LOOKALIKES.items():
    with open(lib.path(name), "wb") as stream:
        stream.write(data)
    refused(lib.path(name))

os.mkfifo(lib.path("fifo"))
for file, words in ((lib.SCRATCH, "is a directory"), (lib.path("fifo"), "is not a regular file"),
                    ("/dev/null", "is not a regular file")):
    code, message = lib.run(file)
    lib.want(code == 2 and message == "ckptfs: %s: %s" % (file, words), "exit code %d: %s", code, message)

code, message = lib.run(lib.path("absent"))
lib.want(code == 2, "no such file: exit code %d: %s", code, message)
print("%d files" % (len(cases) + len(LOOKALIKES)))
lib.want(len(cases) > 200, "only %d files", len(cases))
lib.finish()
