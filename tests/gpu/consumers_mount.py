#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""contrib/gpu through real mounts: every tensor of some golden files, by both ways to share, is what its .npy says (or
its stored bytes, where the types differ). With CKPTFS_TEST_GPU=real on this machine's device."""
import errno
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.path.abspath(os.environ.get("srcdir", "."))
sys.path[:0] = [os.path.join(TOP, "tests", "gpu"), os.path.join(TOP, "tests", "fs")]
import lib
import talk

MODULE = os.path.join(TOP, "contrib", "gpu", "ckptfs_gpu.py")
EXAMPLE = os.path.join(talk.BUILDDIR, "tests", "gpu", "example")
FILES = ["oam/quantized/small_q4.oam", "oam/quantized/small_q8.oam", "safetensors/valid/all_dtypes.safetensors",
         "safetensors/valid/new_dtypes.safetensors", "safetensors/valid/names_awkward.safetensors",
         "envelope/accepted/holds_safetensors.ckpt"]
SEEN_AS_STORED = ("F8_", "F4", "F6_")


def run(words):
    leaks = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}  # the example leaves them to exit
    done = subprocess.run(words, env=talk.environment(**leaks), capture_output=True, text=True, check=False,
                          timeout=120)
    return done.returncode, done.stdout + done.stderr


def counterpart(mount, name, info):
    """The file that holds the same bits."""
    raw, npy = "%s/raw/tensors/%s.bin" % (mount, name), "%s/tensors/%s.npy" % (mount, name)
    return raw if info["dtype"].startswith(SEEN_AS_STORED) or not os.path.exists(npy) else npy


def converts(mount):
    with open(mount + "/gpu/device.json", encoding="utf-8") as file:
        return json.load(file)["converts"]


def check_tensor(mount, name):
    path = "%s/gpu/tensors/%s.json" % (mount, name)
    try:
        with open(path, encoding="utf-8") as file:
            info = json.load(file)
    except OSError as error:  # a quantized one, in a build without nvcc
        lib.want(error.errno == errno.EIO and not converts(mount), "%s: %s", path, error)
        return None
    other = counterpart(mount, name, info)
    code, said = run([sys.executable, MODULE, path, "--check", other])
    lib.want(code == 0 and "equal" in said, "%s beside %s: %d %s", path, other, code, said)
    if info["dtype"] != "BF16" and other.endswith(".npy"):  # the example does not widen
        code, said = run([EXAMPLE, path, other])
        lib.want(code == 0 and "equal" in said, "example %s: %d %s", path, code, said)
    return info["dtype"]


def check_file(source, share):
    seen = set()
    with lib.mounted(source, "gpu", "gpu_share=" + share) as mount:
        for name in os.listdir(mount + "/gpu/tensors"):
            seen.add(check_tensor(mount, name[:-len(".json")]))
    return seen


def check_other_pids():
    """A descriptor can be had where processes have other numbers, as in a container."""
    elsewhere = ["unshare", "--fork", "--pid", "--mount-proc"]
    if subprocess.run(elsewhere + ["true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("other PID namespaces are not tested: unshare is not allowed")
        return
    with lib.mounted(os.path.join(lib.GOLDEN, "oam/quantized/small_q8.oam"), "gpu", "gpu_share=fd") as mount:
        if not converts(mount):
            print("other PID namespaces are not tested: quantized tensors cannot be converted in this build")
            return
        name = min(os.listdir(mount + "/gpu/tensors"))[:-len(".json")]
        path, other = "%s/gpu/tensors/%s.json" % (mount, name), "%s/tensors/%s.npy" % (mount, name)
        for words in ([sys.executable, MODULE, path, "--check", other], [EXAMPLE, path, other]):
            code, said = run(elsewhere + words)
            lib.want(code == 0 and "equal" in said, "in another PID namespace: %s: %d %s", words, code, said)


def check_damage():
    """A tensor whose bytes are damaged does not open, and the programs say so."""
    source = lib.copy(os.path.join(lib.GOLDEN, "oam/quantized/small_q4.oam"), "damaged.oam")
    with lib.mounted(source) as mount:
        with open(mount + "/tensors.json", encoding="utf-8") as file:
            rows = json.load(file)["tensors"]
    name, row = max(rows.items(), key=lambda item: item[1]["offset"])
    with open(source, "r+b") as file:
        file.seek(row["offset"])
        byte = file.read(1)[0]
        file.seek(row["offset"])
        file.write(bytes([byte ^ 1]))
    with lib.mounted(source, "gpu") as mount:
        path = mount + "/gpu/tensors/" + name + ".json"
        for words in ([sys.executable, MODULE, path], [EXAMPLE, path]):
            code, said = run(words)
            told = "Input/output error" in said and "Traceback" not in said
            lib.want(code == 2 and told, "%s: %d %s", words, code, said)


def main():
    if not os.access(talk.HELPER, os.X_OK) or not os.access(EXAMPLE, os.X_OK):
        print("no ckptfs-gpu: skipped")
        sys.exit(77)
    os.environ.update(talk.environment(CKPTFS_GPU_HELPER=os.path.abspath(talk.HELPER), XDG_RUNTIME_DIR=lib.SCRATCH))
    seen = set()
    for name in FILES:
        for share in "ipc", "fd":
            seen |= check_file(os.path.join(lib.GOLDEN, name), share)
    lib.want({"F32", "BF16", "F16", "I64", "BOOL"} <= seen, "too few types: %s", seen)
    check_other_pids()
    check_damage()
    lib.finish()


main()
