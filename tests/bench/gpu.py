# SPDX-License-Identifier: Apache-2.0
"""What the way onto a GPU costs: a tensor of 4 times BENCH_MB beside a plain copy of as many bytes from pinned memory,
a second opener, and the kernels beside a copy on the device. Files are sparse and in the page cache.

Where there is no device nothing is measured. With the tests' stand-in for the driver everything is done once, and no
figure is shown: host memory says nothing about devices."""
import ctypes
import json
import mmap
import os
import statistics
import sys
import time

import figures
import make_data
from figures import Rounds
from make_data import MIB
from mounts import Mount, warm

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "gpu"))
import ckptfs_gpu
from ckptfs_gpu import Address, GpuError, Size

TENSOR = "gpu/tensors/" + make_data.tensor_name(1) + ".json"
OPENS, LAUNCHES, THREADS, BLOCKS_MAX = 100, 20, 256, 65536
# Kernels: bits of a stored element, its share of the scales included.
KERNELS = {"ckpt_bf16": 16, "ckpt_f16": 16, "ckpt_f8_e4m3": 8, "ckpt_q8": 8 + 1, "ckpt_q4": 4 + 1}


class Device:
    """The first device, current in this thread."""

    def __init__(self):
        self.driver = ckptfs_gpu.Driver()
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDeviceGetName", name, 256, device)
        self.context = ckptfs_gpu.Context(self.driver, device.value)
        self.context.__enter__()
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)  # CU_STREAM_NON_BLOCKING
        self.name = name.value.decode()
        self.is_standin = self.name.startswith("Stand-in")

    def call(self, name, *arguments):
        self.driver.call(name, *arguments)

    def alloc(self, size):
        at = Address()
        self.call("cuMemAlloc_v2", ctypes.byref(at), Size(size))
        return at

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)

    def seconds(self, work):
        """Of work() and of what it started."""
        self.wait()
        start = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - start


def show(device, name, value, unit):
    if device.is_standin:
        print("gpu.%s: done with the stand-in, no figure" % name, flush=True)
    else:
        figures.show("gpu." + name, value, unit)


# ---- loading -------------------------------------------------------------------------------------------------------

def mounted(bench, path):
    """Nothing stays on the device once it is closed."""
    words = [bench.program("ckptfs"), "-o", "gpu,gpu_budget=0", path]
    return Mount(words, [bench.program("ckptfs"), "-u"], CKPTFS_GPU_HELPER=bench.program("ckptfs-gpu"))


def open_seconds(path):
    start = time.perf_counter()
    with open(path, "rb") as file:
        json.load(file)
        return time.perf_counter() - start


def first_open(bench, path):
    """Of a new mount, whose helper has started."""
    with mounted(bench, path) as mount:
        open_seconds(mount.at("gpu/device.json"))
        warm(path)
        return open_seconds(mount.at(TENSOR))


def pinned(device, size):
    """(a page-locked buffer's address, the mapping that keeps it)"""
    memory = mmap.mmap(-1, size)
    address = ctypes.addressof(ctypes.c_ubyte.from_buffer(memory))
    device.call("cuMemHostRegister_v2", ctypes.c_void_p(address), Size(size), 0)
    return ctypes.c_void_p(address), memory


def run_loads(bench, device):
    size = 4 * bench.mb * MIB
    at, (buffer, _keep) = device.alloc(size), pinned(device, size)
    copy = lambda: device.seconds(lambda: device.call("cuMemcpyHtoDAsync_v2", at, buffer, Size(size), device.stream))
    for name, make in ("safetensors", make_data.safetensors), ("oam", make_data.oam):
        path = bench.path("gpu." + name)
        make(path, [16 << 10, size, 16 << 10], bench.zeros)
        rounds = Rounds(load=lambda: first_open(bench, path), copy=copy)
        show(device, name + ".load.ratio_pinned_copy", rounds.speed("load", "copy"), "ratio")
        show(device, name + ".load.GB_per_s", size / 1e9 / rounds.seconds("load"), "GB/s")
        os.unlink(path)
    show(device, "pinned_copy.GB_per_s", size / 1e9 / rounds.seconds("copy"), "GB/s")
    device.call("cuMemFree_v2", at)


def run_second_opener(bench, device):
    path = bench.path("gpu.safetensors")
    make_data.safetensors(path, [16 << 10, bench.mb * MIB, 16 << 10], bench.zeros)
    with mounted(bench, path) as mount, open(mount.at(TENSOR), "rb"):
        median = statistics.median(open_seconds(mount.at(TENSOR)) for _ in range(OPENS))
        show(device, "second_opener.ms", 1e3 * median, "ms")
    os.unlink(path)


# ---- kernels -------------------------------------------------------------------------------------------------------

def kernel(device, image, name):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    device.call("cuModuleLoadData", ctypes.byref(module), image)
    device.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    return function


def launch(device, function, values, count):
    """To float32; values: where they are stored, their scales, the result."""
    places = [*values, ctypes.c_uint64(count), ctypes.c_uint32(0)]
    params = (ctypes.c_void_p * len(places))(*[ctypes.addressof(place) for place in places])
    blocks = min(BLOCKS_MAX, (count - 1) // THREADS + 1)
    device.call("cuLaunchKernel", function, blocks, 1, 1, THREADS, 1, 1, 0, device.stream, params, None)


def repeat(work):
    for _ in range(LAUNCHES):
        work()


def run_kernels(bench, device):
    try:
        with open(bench.program("src/gpu/kernels.fatbin"), "rb") as file:
            image = file.read()
    except FileNotFoundError:
        print("gpu.kernel: not measured: built without the CUDA Toolkit")
        return
    count = bench.mb * MIB // 4
    places = [device.alloc(2 * count), device.alloc(count // 8), device.alloc(4 * count), device.alloc(4 * count)]
    for place, size in zip(places, (2 * count, count // 8, 4 * count, 4 * count)):
        device.call("cuMemsetD8Async", place, ctypes.c_ubyte(0), Size(size), device.stream)
    copy = lambda: device.call("cuMemcpyDtoDAsync_v2", places[3], places[2], Size(4 * count), device.stream)
    for name, bits in KERNELS.items():
        function = kernel(device, image, name)
        convert = lambda: launch(device, function, places[:3], count)
        moved = LAUNCHES * count * (bits / 8 + 4)  # bytes, read and written
        rounds = Rounds(kernel=lambda: device.seconds(lambda: repeat(convert)) / moved,
                        copy=lambda: device.seconds(lambda: repeat(copy)) / (LAUNCHES * count * 8))
        show(device, name + ".ratio_device_copy", rounds.speed("kernel", "copy"), "ratio")
        show(device, name + ".GB_per_s", 1e-9 / rounds.seconds("kernel"), "GB/s")
    for place in places:
        device.call("cuMemFree_v2", place)


def run_gpu(bench):
    try:
        device = Device()
    except GpuError as error:
        print("gpu: not measured: no CUDA device (%s)" % error)
        return
    print("gpu: %s" % device.name, flush=True)
    run_loads(bench, device)
    run_second_opener(bench, device)
    run_kernels(bench, device)
