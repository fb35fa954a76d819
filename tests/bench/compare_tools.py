# SPDX-License-Identifier: Apache-2.0
"""What is compared: how the same .npy files get into an image of each kind, and how that is mounted.

A `Tensors` is a folder of .npy files of random bytes, and for make_data the blob of what they hold one after the other.
"""
import os
import shutil
import subprocess
import tarfile
import zipfile
from typing import Callable, NamedTuple

import make_data
from make_data import MIB


class Random:
    """Bytes that do not compress."""

    def write(self, file, size):
        for at in range(0, size, MIB):
            file.write(os.urandom(min(MIB, size - at)))


class Tensors:
    def __init__(self, path, sizes, serial):
        self.path, self.sizes, self.serial = path, sizes, serial
        make_data.npy_folder(path, sizes, Random())
        self.names = [make_data.tensor_name(number) + ".npy" for number in range(len(sizes))]

    def at(self, name):
        return os.path.join(self.path, name)

    def write(self, file, _size):
        for name, size in zip(self.names, self.sizes):
            with open(self.at(name), "rb") as tensor:
                tensor.seek(len(make_data.npy_header(size)))
                shutil.copyfileobj(tensor, file, MIB)

    def fnv1a(self, *place):
        return make_data.Noise.fnv1a(self, *place)


# ---- images: made(tensors, path) -----------------------------------------------------------------------------------

def oam(tensors, path):
    make_data.oam(path, tensors.sizes, tensors)


def envelope(tensors, path):
    oam(tensors, path + ".payload")
    make_data.envelope(path, path + ".payload")
    os.unlink(path + ".payload")


def safetensors(tensors, path):
    make_data.safetensors(path, tensors.sizes, tensors)


def stored_zip(tensors, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for name in tensors.names:
            file.write(tensors.at(name), name)


def tar(tensors, path):
    with tarfile.open(path, "w") as file:
        for name in tensors.names:
            file.add(tensors.at(name), name)


def quietly(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def squashfs(tensors, path):
    quietly("mksquashfs", tensors.path, path, "-noI", "-noD", "-noF", "-noX", "-noappend", "-no-progress")


def erofs(tensors, path):
    quietly("mkfs.erofs", path, tensors.path)


# ---- tools ---------------------------------------------------------------------------------------------------------

class Tool(NamedTuple):
    name: str
    package: str  # of Debian's, for its version
    needs: tuple  # programs
    image: Callable
    mount: tuple  # words before the image and the folder
    under: str  # where the .npy files are in the mount
    label: str  # these three are for the table
    verifies: str
    tensors: str


def ckptfs(build, name, image, label, verifies):
    return Tool("ckptfs_" + name, "", (), image, (os.path.join(build, "ckptfs"),), "tensors", label, verifies, "yes")


def packed(name, label, package, image, mount, *needs, verifies="no"):
    return Tool(name, package, (mount[0], *needs), image, mount, "", label, verifies, "no")


def tools(build):
    return [
        ckptfs(build, "oam", oam, "**ckptfs**, `.oam`", "every byte, FNV-1a 64"),
        ckptfs(build, "envelope", envelope, "**ckptfs**, envelope", "every byte, SHA-256 and FNV-1a 64"),
        ckptfs(build, "safetensors", safetensors, "**ckptfs**, safetensors", "nothing to verify by"),
        packed("squashfuse", "squashfuse, squashfs", "squashfuse", squashfs, ("squashfuse",), "mksquashfs"),
        packed("squashfuse_ll", "squashfuse_ll, squashfs", "squashfuse", squashfs, ("squashfuse_ll",), "mksquashfs"),
        packed("erofsfuse", "erofsfuse, erofs", "erofs-utils", erofs, ("erofsfuse",), "mkfs.erofs"),
        packed("fuse-zip", "fuse-zip, zip", "fuse-zip", stored_zip, ("fuse-zip", "-r"), verifies="CRC-32, whole files"),
        packed("archivemount", "archivemount, tar", "archivemount", tar, ("archivemount", "-o", "readonly")),
        Tool("h5py", "python3-h5py", (), None, (), "", "h5py, HDF5 (no mount)", "no", "yes, in Python"),
    ]
