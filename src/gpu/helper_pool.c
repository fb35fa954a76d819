/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/helper_pool.h"

#include <errno.h>
#include <stdlib.h>

#define BLOCK_MIN (2u << 20)
#define SMALL (BLOCK_MIN / 2) /* tensors up to this size live together */

struct place *pool_find(struct pool *pool, uint64_t id) {
    struct place *place = pool->places;
    while (place && place->id != id)
        place = place->next;
    return place;
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

static bool round_up(uint64_t bytes, uint64_t to, uint64_t *ret) {
    uint64_t units = bytes / to + (bytes % to != 0);
    return !__builtin_mul_overflow(units, to, ret) && *ret <= SIZE_MAX;
}

static struct cuda_alloc_prop exportable(const struct device *device) {
    return (struct cuda_alloc_prop){.type = CUDA_ALLOC_PINNED,
        .handle_types = CUDA_HANDLE_FD,
        .location = {.type = CUDA_LOCATION_DEVICE, .id = device->handle}};
}

/* Undoes map_block, as far as it came. */
static void unmap_block(struct device *device, struct block *block, bool mapped) {
    struct driver *driver = &device->driver;
    if (mapped)
        (void)driver->cuMemUnmap(block->at, block->size);
    if (block->at)
        (void)driver->cuMemAddressFree(block->at, block->size);
    (void)driver->cuMemRelease(block->alloc);
}

static int map_block(struct device *device, struct block *block, struct ckpt_err *err) {
    struct driver *driver = &device->driver;
    struct cuda_access access = {
        .location = {.type = CUDA_LOCATION_DEVICE, .id = device->handle}, .flags = CUDA_ACCESS_READWRITE};
    bool mapped = false;
    int rc = driver_check(driver, driver->cuMemAddressReserve(&block->at, block->size, 0, 0, 0), err,
        "cuMemAddressReserve of %llu bytes", (unsigned long long)block->size);
    if (!rc) {
        rc = driver_check(driver, driver->cuMemMap(block->at, block->size, 0, block->alloc, 0), err,
            "cuMemMap of %llu bytes", (unsigned long long)block->size);
        mapped = !rc;
    }
    if (!rc)
        rc = driver_check(
            driver, driver->cuMemSetAccess(block->at, block->size, &access, 1), err, "cuMemSetAccess");
    if (rc)
        unmap_block(device, block, mapped);
    return rc;
}

static int create_block(struct device *device, struct block *block, struct ckpt_err *err) {
    struct driver *driver = &device->driver;
    struct cuda_alloc_prop prop = exportable(device);
    size_t granule = BLOCK_MIN;
    int rc =
        driver_check(driver, driver->cuMemGetAllocationGranularity(&granule, &prop, CUDA_GRANULARITY_MINIMUM),
            err, "cuMemGetAllocationGranularity");
    if (rc)
        return rc;
    if (!granule || !round_up(block->size, granule, &block->size))
        return err_os(err, ENOMEM, "an allocation of %llu bytes", (unsigned long long)block->size);
    rc = driver_check(driver, driver->cuMemCreate(&block->alloc, block->size, &prop, 0), err,
        "cuMemCreate of %llu bytes", (unsigned long long)block->size);
    return rc ? rc : map_block(device, block, err);
}

static int allocate(struct device *device, struct block *block, struct ckpt_err *err) {
    if (block->share == GPU_SHARE_FD)
        return create_block(device, block, err);
    return driver_check(&device->driver, device->driver.cuMemAlloc(&block->at, block->size), err,
        "cuMemAlloc of %llu bytes", (unsigned long long)block->size);
}

static int add_block(
    struct pool *pool, uint64_t bytes, enum gpu_share share, struct block **ret_block, struct ckpt_err *err) {
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return err_os(err, ENOMEM, "a note of an allocation");
    block->share = share;
    int rc = round_up(bytes, BLOCK_MIN, &block->size)
                 ? allocate(pool->device, block, err)
                 : err_os(err, ENOMEM, "an allocation of %llu bytes", (unsigned long long)bytes);
    if (rc) {
        free(block);
        return rc;
    }
    block->next = pool->blocks;
    pool->blocks = block;
    pool->taken += block->size;
    *ret_block = block;
    return 0;
}

static void drop_block(struct pool *pool, struct block *block) {
    struct block **link = &pool->blocks;
    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    pool->taken -= block->size;
    if (block->share == GPU_SHARE_FD)
        unmap_block(pool->device, block, true);
    else
        (void)pool->device->driver.cuMemFree(block->at);
    free(block);
}

/* ---- places ------------------------------------------------------------------------------------------ */

/* A block of small tensors that has room for one more. */
static struct block *with_room(struct pool *pool, uint64_t bytes, enum gpu_share share) {
    struct block *block = pool->blocks;
    while (block && (block->share != share || block->size - block->used < bytes))
        block = block->next;
    return block;
}

int pool_take(struct pool *pool, uint64_t id, uint64_t bytes, enum gpu_share share, struct place **ret_place,
    uint64_t *ret_taken, struct ckpt_err *err) {
    uint64_t room = 0;
    struct block *block = NULL;
    struct place *place = calloc(1, sizeof *place);
    if (!place)
        return err_os(err, ENOMEM, "a note of a tensor");
    bool small = bytes <= SMALL;
    if (small && round_up(bytes ? bytes : 1, GPU_ALIGN, &room))
        block = with_room(pool, room, share);
    uint64_t before = pool->taken;
    int rc = block ? 0 : add_block(pool, bytes ? bytes : 1, share, &block, err);
    if (rc) {
        free(place);
        return rc;
    }
    *place =
        (struct place){.next = pool->places, .block = block, .id = id, .offset = block->used, .bytes = bytes};
    block->used += small ? room : block->size; /* nothing else goes beside a large one */
    block->tensors++;
    pool->places = place;
    *ret_place = place;
    *ret_taken = pool->taken - before;
    return 0;
}

uint64_t pool_give(struct pool *pool, struct place *place) {
    struct place **link = &pool->places;
    while (*link != place)
        link = &(*link)->next;
    *link = place->next;
    uint64_t before = pool->taken;
    if (--place->block->tensors == 0)
        drop_block(pool, place->block);
    free(place);
    return before - pool->taken;
}

int pool_share(struct pool *pool, const struct place *place, uint8_t ret_handle[GPU_HANDLE_BYTES],
    int *ret_fd, struct ckpt_err *err) {
    struct driver *driver = &pool->device->driver;
    struct cuda_ipc_handle handle = {0};
    int fd = -1, rc;
    if (place->block->share == GPU_SHARE_FD)
        rc = driver_check(driver,
            driver->cuMemExportToShareableHandle(&fd, place->block->alloc, CUDA_HANDLE_FD, 0), err,
            "cuMemExportToShareableHandle");
    else
        rc = driver_check(
            driver, driver->cuIpcGetMemHandle(&handle, place->block->at), err, "cuIpcGetMemHandle");
    if (rc)
        return rc;
    memcpy(ret_handle, handle.bytes, sizeof handle.bytes);
    *ret_fd = fd;
    return 0;
}
