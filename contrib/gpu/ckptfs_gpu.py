#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors that ckptfs holds on a GPU (mount option gpu), in Python.

    import ckptfs_gpu
    with ckptfs_gpu.open("/mnt/model/gpu/tensors/w.json") as tensor:
        weights = tensor.torch()  # or .cupy(), .numpy(), .read()
        ...                       # the memory is there until the end of the block

Needs the standard library and the CUDA driver, no CUDA toolkit. All who open a tensor share one copy of it: do not
write to it. Failures raise GpuError, or OSError with the errno that the mount gave (ENODEV, ENOMEM, ETIMEDOUT, EIO).

As a program: ckptfs_gpu.py FILE.json [--check NPY], which shows the tensor, and with --check compares all of it with
the mount's tensors/NAME.npy (or raw/tensors/NAME.bin). Exit code 0: fine; 1: they differ; 2: it failed.
"""
import argparse
import ast
import builtins
import contextlib
import ctypes
import json
import os
import socket
import struct
import sys

# dtype: (bytes of an element, 0 where they are packed; NumPy's word; PyTorch's word). NumPy has no word for some:
# they are shown as unsigned integers.
DTYPES = {
    "F64": (8, "<f8", "float64"), "F32": (4, "<f4", "float32"), "F16": (2, "<f2", "float16"),
    "BF16": (2, "<u2", "bfloat16"), "F8_E5M2": (1, "|u1", "float8_e5m2"), "F8_E4M3": (1, "|u1", "float8_e4m3fn"),
    "F8_E8M0": (1, "|u1", "float8_e8m0fnu"), "F8_E5M2FNUZ": (1, "|u1", "float8_e5m2fnuz"),
    "F8_E4M3FNUZ": (1, "|u1", "float8_e4m3fnuz"), "C64": (8, "<c8", "complex64"), "C128": (16, "<c16", "complex128"),
    "I64": (8, "<i8", "int64"), "I32": (4, "<i4", "int32"), "I16": (2, "<i2", "int16"), "I8": (1, "|i1", "int8"),
    "U64": (8, "<u8", "uint64"), "U32": (4, "<u4", "uint32"), "U16": (2, "<u2", "uint16"), "U8": (1, "|u1", "uint8"),
    "BOOL": (1, "|b1", "bool"), "F4": (0, "|u1", None), "F6_E2M3": (0, "|u1", None), "F6_E3M2": (0, "|u1", None)}
PIECE = 64 << 20  # bytes that are copied to the host at a time


class GpuError(Exception):
    """The driver, the device or the file is not as it must be."""


# ---- the driver ----------------------------------------------------------------------------------------------------

class Handle(ctypes.Structure):  # CUipcMemHandle, passed by value
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


class Access(ctypes.Structure):  # CUmemAccessDesc: a device's number, read and write
    _fields_ = [("location_type", ctypes.c_int), ("location_id", ctypes.c_int), ("flags", ctypes.c_int)]


LAZY_PEER_ACCESS = 1
HANDLE_IS_FD = 1
ON_DEVICE, READ_WRITE = 1, 3
Address, Size = ctypes.c_uint64, ctypes.c_size_t


class Driver:
    """libcuda.so.1. A call's arguments are ctypes values; those that fail raise."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise GpuError("no CUDA driver: %s" % error) from None
        self.call("cuInit", ctypes.c_uint(0))

    def call(self, name, *arguments):
        try:
            result = getattr(self.library, name)(*arguments)
        except AttributeError:
            raise GpuError("the CUDA driver lacks %s" % name) from None
        if result:
            raise GpuError("%s: %s" % (name, self.name_of(result)))

    def name_of(self, result):
        name = ctypes.c_char_p()
        if self.library.cuGetErrorName(result, ctypes.byref(name)) or not name.value:
            return "error %d" % result
        return "%s (%d)" % (name.value.decode(), result)

    def device(self, uuid):
        """The number, in this process, of the device with that UUID: CUDA_VISIBLE_DEVICES may hide or reorder them."""
        count, device, found = ctypes.c_int(), ctypes.c_int(), (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        for number in range(count.value):
            self.call("cuDeviceGet", ctypes.byref(device), number)
            self.call("cuDeviceGetUuid_v2", ctypes.byref(found), device)
            if bytes(found).hex() == uuid.lower().replace("gpu-", "").replace("-", ""):
                return device.value
        raise GpuError("this process sees %d devices, but not %s (CUDA_VISIBLE_DEVICES?)" % (count.value, uuid))


class Context:
    """A device's primary context, the one that PyTorch and CuPy use, too: current within `with`."""

    def __init__(self, driver, device):
        self.driver, self.device, self.handle = driver, device, ctypes.c_void_p()
        driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.handle), device)

    def __enter__(self):
        self.driver.call("cuCtxPushCurrent_v2", self.handle)

    def __exit__(self, *_):
        self.driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def release(self):
        self.driver.call("cuDevicePrimaryCtxRelease_v2", self.device)


# ---- getting at the memory -----------------------------------------------------------------------------------------

def receive_descriptor(path, token):
    """What the mount's socket gives for a token: one packet there, one back, "y" with the descriptor or "n"."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.settimeout(30)
        try:
            sock.connect(path)
            sock.sendall(token.encode())
            answer, fds, _, _ = socket.recv_fds(sock, 2, 1)
        except OSError as error:
            raise GpuError("the socket %s: %s" % (path, error)) from None
    if answer != b"y" or len(fds) != 1:
        raise GpuError("the socket %s does not know the token %s" % (path, token))
    return fds[0]


def map_handle(context, info, undo):
    """share "ipc": the address of the allocation, which stays mapped until undo is called."""
    base, handle = Address(), Handle((ctypes.c_ubyte * 64)(*bytes.fromhex(info["ipc_handle"])))
    context.driver.call("cuIpcOpenMemHandle_v2", ctypes.byref(base), handle, LAZY_PEER_ACCESS)
    undo.callback(context.driver.call, "cuIpcCloseMemHandle", base)
    return base.value


def map_descriptor(context, info, undo):
    """share "fd": likewise. The allocation lives as long as it is mapped somewhere."""
    driver, base, alloc, size = context.driver, Address(), ctypes.c_uint64(), Size(info["block"])
    fd = receive_descriptor(info["socket"], info["token"])
    try:
        driver.call("cuMemImportFromShareableHandle", ctypes.byref(alloc), ctypes.c_void_p(fd), HANDLE_IS_FD)
    finally:
        os.close(fd)
    undo.callback(driver.call, "cuMemRelease", alloc)
    driver.call("cuMemAddressReserve", ctypes.byref(base), size, Size(0), Address(0), ctypes.c_ulonglong(0))
    undo.callback(driver.call, "cuMemAddressFree", base, size)
    driver.call("cuMemMap", base, size, Size(0), alloc, ctypes.c_ulonglong(0))
    undo.callback(driver.call, "cuMemUnmap", base, size)
    access = Access(ON_DEVICE, context.device, READ_WRITE)
    driver.call("cuMemSetAccess", base, size, ctypes.byref(access), Size(1))
    return base.value


SHARES = {"ipc": map_handle, "fd": map_descriptor}


# ---- tensors -------------------------------------------------------------------------------------------------------

class Info(dict):
    """What the file says."""

    def __missing__(self, key):
        raise GpuError("the file does not tell the tensor's %s" % key)


class Tensor:
    """One tensor. ptr: its address on the device; device: the device's number in this process; dtype, shape, nbytes."""

    def __init__(self, path):
        self.undo = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:  # undone if anything here fails
            file = undo.enter_context(builtins.open(path, "rb"))  # open: the mount keeps the tensor where it is
            self.take(Info(json.load(file)))
            driver = Driver()
            self.device = driver.device(self.info["uuid"])
            self.context = Context(driver, self.device)
            undo.callback(self.context.release)
            self.ptr = self.map(undo) if self.nbytes else 0
            self.undo = undo.pop_all()

    def take(self, info):
        self.info, self.name, self.dtype, self.nbytes = info, info["name"], info["dtype"], info["bytes"]
        self.shape = tuple(info["shape"])
        if info["share"] not in SHARES or self.dtype not in DTYPES:
            raise GpuError("%s: share %s, dtype %s are not known here" % (self.name, info["share"], self.dtype))
        self.itemsize, self.numpy_word, self.torch_word = DTYPES[self.dtype]

    def map(self, undo):
        with self.context, contextlib.ExitStack() as mapping:
            base = SHARES[self.info["share"]](self.context, self.info, mapping)
            undo.callback(self.unmap, mapping.pop_all())
        return base + self.info["offset"]

    def unmap(self, mapping):
        with self.context:
            mapping.close()

    def close(self):
        """Lets the tensor go; what torch() and cupy() returned must not be used any more."""
        self.ptr = 0
        self.undo.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- copies in host memory -------------------------------------------------------------------------------------

    def read(self, offset=0, size=None):
        """size bytes (all that follow), copied from the device."""
        size = self.nbytes - offset if size is None else size
        if offset < 0 or size < 0 or offset + size > self.nbytes:
            raise ValueError("%d bytes from %d on of %d" % (size, offset, self.nbytes))
        if not self.ptr:
            if self.nbytes:
                raise GpuError("%s is closed" % self.name)
            return b""
        copy = bytearray(size)
        with self.context:
            view = (ctypes.c_ubyte * size).from_buffer(copy)
            if size:
                self.context.driver.call("cuMemcpyDtoH_v2", view, Address(self.ptr + offset), Size(size))
        return bytes(copy)

    def numpy(self):
        """A NumPy array, a copy. Types that NumPy lacks are unsigned integers with their bits."""
        import numpy
        return numpy.frombuffer(self.read(), self.numpy_word).reshape(self.array_shape())

    # ---- views of the device's memory ------------------------------------------------------------------------------

    def array_shape(self):
        return self.shape if self.itemsize else (self.nbytes,)

    def interface(self, word, read_only):
        return {"shape": self.array_shape(), "typestr": word, "data": (self.ptr, read_only), "version": 3,
                "strides": None, "stream": None}

    @property
    def __cuda_array_interface__(self):
        return self.interface(self.numpy_word, True)

    def cupy(self):
        """A CuPy array. Types that CuPy lacks are unsigned integers with their bits."""
        import cupy
        with cupy.cuda.Device(self.device):
            return cupy.asarray(self)

    def torch(self):
        """A PyTorch tensor of the tensor's own type (packed ones: uint8)."""
        import torch
        word = self.numpy_word.replace("<u", "<i")  # any PyTorch knows these
        view = Interface(self, self.interface(word, False))  # PyTorch takes nothing that is read-only
        array = torch.as_tensor(view, device="cuda:%d" % self.device)
        return array if self.torch_word is None else array.view(getattr(torch, self.torch_word))


class Interface:
    def __init__(self, tensor, interface):
        self.tensor, self.__cuda_array_interface__ = tensor, interface


def open(path):  # as in gzip.open
    """The tensor that a file below gpu/tensors tells of; use it as a context manager, or close() it."""
    return Tensor(path)


# ---- the program ---------------------------------------------------------------------------------------------------

def npy_data(file):
    """Where the values begin, and NumPy's word for their type; None if it is no .npy file."""
    head = file.read(12)
    if head[:6] != b"\x93NUMPY":
        return 0, None
    start, size = (10, struct.unpack_from("<H", head, 8)[0]) if head[6] == 1 else (12, struct.unpack("<8xI", head)[0])
    file.seek(start)
    return start + size, ast.literal_eval(file.read(size).decode("latin-1"))["descr"]


def widened(bits):
    """bfloat16 as float32."""
    wide = bytearray(2 * len(bits))
    wide[2::4], wide[3::4] = bits[0::2], bits[1::2]
    return bytes(wide)


def difference(tensor, path):
    """None when the file holds the tensor's values, else what differs."""
    with builtins.open(path, "rb") as file:
        start, word = npy_data(file)
        convert = widened if tensor.dtype == "BF16" and word == "<f4" else bytes
        if word not in (None, tensor.numpy_word) and convert is bytes:
            raise GpuError("%s holds %s, the device %s: compare with raw/tensors" % (path, word, tensor.dtype))
        file.seek(start)
        for at in range(0, tensor.nbytes, PIECE):
            values = convert(tensor.read(at, min(PIECE, tensor.nbytes - at)))
            if file.read(len(values)) != values:
                return "differs from %s between byte %d and %d" % (path, at, at + PIECE)
        return "is shorter than %s" % path if file.read(1) else None


def first_values(tensor, count=4):
    """The first values as text, those of types that struct lacks in hex."""
    data = tensor.read(0, min(tensor.nbytes, count * (tensor.itemsize or 1)))
    letter = {"<f8": "d", "<f4": "f", "<f2": "e"}.get(tensor.numpy_word)
    if letter:
        values = struct.unpack("<%d%s" % (len(data) // tensor.itemsize, letter), data)
        return " ".join("%.9g" % value for value in values)
    return data.hex(" ")


def main():
    parser = argparse.ArgumentParser(description="Shows a tensor that ckptfs holds on a GPU.")
    parser.add_argument("file", metavar="FILE.json", help="below gpu/tensors of the mount")
    parser.add_argument("--check", metavar="NPY", help="compare it with tensors/NAME.npy or raw/tensors/NAME.bin")
    words = parser.parse_args()
    try:
        with open(words.file) as tensor:
            print("%s: %s %s, %d bytes on device %d" % (tensor.name, tensor.dtype, list(tensor.shape), tensor.nbytes,
                                                        tensor.device))
            print(first_values(tensor))
            if not words.check:
                return 0
            differs = difference(tensor, words.check)
            print(differs or "equal to " + words.check)
            return 1 if differs else 0
    except (GpuError, OSError, ValueError) as error:
        print("ckptfs_gpu: %s" % error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
