/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory for tensors. A block is one allocation of the driver's, a multiple of 2 MiB: what can be
 * shared with another process. A large tensor has its own; small ones follow each other in a common one,
 * which goes back when the last of them does.
 */
#ifndef GPU_HELPER_POOL_H
#define GPU_HELPER_POOL_H

#include "gpu/helper_device.h"

struct block {
    struct block *next;
    cuda_ptr at;
    uint64_t size;
    uint64_t used;    /* bytes from the start that were given out, once */
    uint64_t tensors; /* that live in it */
    enum gpu_share share;
    cuda_alloc alloc; /* GPU_SHARE_FD */
};

/* A tensor's place. */
struct place {
    struct place *next;
    struct block *block;
    uint64_t id;
    uint64_t offset, bytes; /* in the block */
};

/* All zero but the device: empty. */
struct pool {
    struct device *device;
    struct block *blocks;
    struct place *places;
    uint64_t taken; /* bytes of all blocks */
};

struct place *pool_find(struct pool *pool, uint64_t id);

/* Room for a tensor that is not there yet, aligned to GPU_ALIGN; *ret_taken is what the device gave for it.
 * Errors: IO (ENOMEM, EIO, ...). */
int pool_take(struct pool *pool, uint64_t id, uint64_t bytes, enum gpu_share share, struct place **ret_place,
    uint64_t *ret_taken, struct ckpt_err *err);

/* Lets a tensor go; returns the bytes that went back to the device. */
uint64_t pool_give(struct pool *pool, struct place *place);

/* What another process opens the place's block with: a handle, or a new descriptor (*ret_fd, else -1). */
int pool_share(struct pool *pool, const struct place *place, uint8_t ret_handle[GPU_HANDLE_BYTES],
    int *ret_fd, struct ckpt_err *err);

#endif
