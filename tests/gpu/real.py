#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""real.py TEST...: runs tests (as the Makefile's TESTS names them) on the machine's own CUDA device instead of the
stand-in; `make check-gpu` does. Exit code 77 when there is no device: then nothing was run."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
os.environ["CKPTFS_TEST_GPU"] = "real"
import talk


def device():
    """The device's facts, or why there is none."""
    if not os.access(talk.HELPER, os.X_OK):
        return None, "%s was not built" % talk.HELPER
    with talk.Helper() as helper:
        try:
            return helper.hello(), None
        except (talk.Refused, talk.Gone) as error:
            return None, str(error) or "the helper ended"


def run(test):
    places = [os.path.abspath(os.path.join(os.environ.get(dir, "."), test)) for dir in ("builddir", "srcdir")]
    path = next((place for place in places if os.path.exists(place)), places[0])
    done = subprocess.run([path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False)
    word = {0: "PASS", 77: "SKIP"}.get(done.returncode, "FAIL")
    print("%s: %s" % (word, test), flush=True)
    if word != "PASS":
        print(done.stdout, flush=True)
    return word


def main():
    facts, reason = device()
    if not facts:
        print("no CUDA device: not run (%s)" % reason)
        return 77
    if facts["name"].startswith("Stand-in"):
        print("no CUDA device: not run (libcuda.so.1 is the tests' own stand-in)")
        return 77
    print("%s, driver %d" % (facts["name"], facts["driver"]), flush=True)
    words = [run(test) for test in sys.argv[1:]]
    print("%d passed, %d failed, %d skipped" % tuple(map(words.count, ("PASS", "FAIL", "SKIP"))))
    return 1 if "FAIL" in words or "PASS" not in words else 0


if __name__ == "__main__":
    sys.exit(main())
