/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/helper_device.h"

#include "gpu/helper_select.h"
#include "gpu/kernels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define THREADS 256      /* of a kernel's block */
#define BLOCKS_MAX 65536 /* the kernels stride over what is more */
#define GRANULE (2u << 20)

/* ---- the window -------------------------------------------------------------------------------------- */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* Sealed, so that no copy ends in SIGBUS. */
static int map_window(struct device *device, uint32_t half, int memfd, struct ckpt_err *err) {
    struct stat stat;
    int seals = fcntl(memfd, F_GET_SEALS);
    if (fstat(memfd, &stat) || seals < 0 || (seals & SEALS) != SEALS)
        return err_os(err, EINVAL, "the window is no sealed memfd");
    if (stat.st_size != 2 * (off_t)half)
        return err_os(err, EINVAL, "the window has %lld bytes, not 2 x %u", (long long)stat.st_size, half);
    void *at = mmap(NULL, 2 * (size_t)half, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (at == MAP_FAILED)
        return err_os(err, ENOMEM, "map the window of 2 x %u bytes", half);
    device->window = at;
    device->half = half;
    device->pinned = device->driver.cuMemHostRegister(at, 2 * (size_t)half, 0) == 0;
    return 0;
}

/* ---- the kernels ------------------------------------------------------------------------------------- */

static const char *const kernel_names[CONVERT_COUNT] = {
#define NAME(kind, name) [CONVERT_##kind] = #name,
    CONVERT_KINDS(NAME)};

static int load_image(struct device *device, const struct kernel_image *image, struct ckpt_err *err) {
    struct driver *driver = &device->driver;
    cuda_module module;
    int rc = driver_check(driver, driver->cuModuleLoadData(&module, image->bytes), err,
        "cuModuleLoadData of the kernels' %s", image->what);
    for (int i = 0; !rc && i < CONVERT_COUNT; i++)
        rc = driver_check(driver, driver->cuModuleGetFunction(&device->kernels[i], module, kernel_names[i]),
            err, "cuModuleGetFunction %s", kernel_names[i]);
    return rc;
}

/* A device without kernels still holds tensors as they are stored. */
static void load_kernels(struct device *device) {
    size_t count;
    const struct kernel_image *images = kernel_images(&count);
    struct ckpt_err err;
    err_set(&err, CKPT_E_UNSUPPORTED, "ckptfs-gpu was built without the CUDA Toolkit");
    for (size_t i = 0; i < count; i++)
        if (!load_image(device, &images[i], &err))
            return;
    memset(device->kernels, 0, sizeof device->kernels);
    snprintf(device->lack, sizeof device->lack, "%.*s", GPU_NAME_MAX, err.msg);
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static int make_current(struct device *device, struct ckpt_err *err) {
    struct driver *driver = &device->driver;
    cuda_ctx ctx = NULL;
    int rc = driver_check(driver, driver->cuDevicePrimaryCtxRetain(&ctx, device->handle), err,
        "cuDevicePrimaryCtxRetain of device %d", device->handle);
    if (!rc)
        rc = driver_check(driver, driver->cuCtxSetCurrent(ctx), err, "cuCtxSetCurrent");
    if (!rc)
        rc = driver_check(
            driver, driver->cuStreamCreate(&device->stream, CUDA_STREAM_NON_BLOCKING), err, "cuStreamCreate");
    if (!rc)
        rc = driver_check(driver,
            driver->cuEventCreate(&device->copied, CUDA_EVENT_BLOCKING_SYNC | CUDA_EVENT_DISABLE_TIMING), err,
            "cuEventCreate");
    return rc;
}

static int facts(struct device *device, struct gpu_device *facts, struct ckpt_err *err) {
    struct driver *driver = &device->driver;
    struct cuda_uuid uuid;
    int version = 0;
    int rc = driver_check(driver, driver->cuDriverGetVersion(&version), err, "cuDriverGetVersion");
    if (!rc)
        rc = driver_check(driver, driver->cuDeviceGetUuid(&uuid, device->handle), err, "cuDeviceGetUuid");
    if (!rc)
        rc = driver_check(driver, driver->cuDeviceGetName(facts->name, sizeof facts->name, device->handle),
            err, "cuDeviceGetName");
    if (!rc)
        rc = device_memory(device, &facts->free, &facts->total, err);
    if (rc)
        return rc;
    memcpy(facts->uuid, uuid.bytes, sizeof facts->uuid);
    memcpy(facts->lack, device->lack, sizeof facts->lack);
    facts->ordinal = (uint32_t)device->handle;
    facts->driver = (uint32_t)version;
    facts->granule = GRANULE;
    facts->pinned = device->pinned;
    facts->converts = device->kernels[0] != NULL;
    return 0;
}

int device_open(struct device *device, const struct gpu_hello *hello, int memfd, struct gpu_device *ret_facts,
    struct ckpt_err *err) {
    *device = (struct device){0};
    int rc = driver_open(&device->driver, err);
    if (!rc)
        rc = device_select(&device->driver, hello->selector, &device->handle, err);
    if (!rc)
        rc = make_current(device, err);
    if (!rc)
        rc = map_window(device, hello->half, memfd, err);
    if (rc)
        return rc;
    load_kernels(device);
    struct gpu_device found = {0};
    rc = facts(device, &found, err);
    if (!rc)
        *ret_facts = found;
    return rc;
}

int device_memory(struct device *device, uint64_t *ret_free, uint64_t *ret_total, struct ckpt_err *err) {
    size_t free = 0, total = 0;
    int rc = driver_check(&device->driver, device->driver.cuMemGetInfo(&free, &total), err, "cuMemGetInfo");
    if (rc)
        return rc;
    *ret_free = free;
    *ret_total = total;
    return 0;
}

/* ---- moving bytes ------------------------------------------------------------------------------------ */

int device_copy(
    struct device *device, cuda_ptr to, const uint8_t *from, uint64_t bytes, struct ckpt_err *err) {
    struct driver *driver = &device->driver;
    int rc = driver_check(driver, driver->cuMemcpyHtoDAsync(to, from, bytes, device->stream), err,
        "cuMemcpyHtoDAsync of %llu bytes", (unsigned long long)bytes);
    if (!rc)
        rc =
            driver_check(driver, driver->cuEventRecord(device->copied, device->stream), err, "cuEventRecord");
    if (!rc)
        rc = driver_check(driver, driver->cuEventSynchronize(device->copied), err,
            "cuEventSynchronize after a copy of %llu bytes", (unsigned long long)bytes);
    return rc;
}

int device_read(struct device *device, uint8_t *to, cuda_ptr from, uint64_t bytes, struct ckpt_err *err) {
    struct driver *driver = &device->driver;
    int rc = driver_check(driver, driver->cuMemcpyDtoHAsync(to, from, bytes, device->stream), err,
        "cuMemcpyDtoHAsync of %llu bytes", (unsigned long long)bytes);
    return rc ? rc : device_wait(device, err);
}

int device_clear(struct device *device, cuda_ptr at, uint64_t bytes, struct ckpt_err *err) {
    struct driver *driver = &device->driver;
    int rc = driver_check(driver, driver->cuMemsetD8Async(at, 0, bytes, device->stream), err,
        "cuMemsetD8Async of %llu bytes", (unsigned long long)bytes);
    return rc ? rc : device_wait(device, err);
}

int device_convert(struct device *device, enum convert_kind kind, enum convert_to to, cuda_ptr in,
    cuda_ptr scales, cuda_ptr out, uint64_t count, struct ckpt_err *err) {
    uint32_t target = to;
    void *params[] = {&in, &scales, &out, &count, &target};
    uint64_t blocks = (count - 1) / THREADS + 1;
    if (blocks > BLOCKS_MAX)
        blocks = BLOCKS_MAX;
    return driver_check(&device->driver,
        device->driver.cuLaunchKernel(
            device->kernels[kind], (unsigned)blocks, 1, 1, THREADS, 1, 1, 0, device->stream, params, NULL),
        err, "cuLaunchKernel %s for %llu elements", kernel_names[kind], (unsigned long long)count);
}

int device_wait(struct device *device, struct ckpt_err *err) {
    return driver_check(
        &device->driver, device->driver.cuStreamSynchronize(device->stream), err, "cuStreamSynchronize");
}
