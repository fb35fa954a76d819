/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's memory for parameter stores: a struct ckpt_memory whose blocks a helper of its own holds. When
 * the helper ends, they are lost, and every call fails from then on; another one is not started.
 * Threads: one at a time.
 */
#ifndef GPU_STORE_H
#define GPU_STORE_H

#include "gpu/session.h"

struct gpu_store;

struct gpu_store_setup {
    const char *helper;     /* the program */
    const char *device;     /* the helper's selector */
    enum gpu_share share;   /* how others get at the blocks */
    int start_ms, reply_ms; /* deadlines */
};

/* Starts the helper. Errors: those of session_start and session_greet. */
int gpu_store_new(const struct gpu_store_setup *setup, struct gpu_store **ret_store, struct ckpt_err *err);
/* All blocks were freed. NULL is allowed. */
void gpu_store_free(struct gpu_store *store);

/* Lives as long as the store. Its calls' errors: GPU (ENOMEM: the device is full), NOMEM. */
struct ckpt_memory *gpu_store_memory(struct gpu_store *store);
/* The store whose memory it is; NULL: it is another's. */
struct gpu_store *gpu_store_of(const struct ckpt_memory *memory);

/* What alloc gives. */
struct gpu_block {
    struct gpu_ready at;
    int fd; /* GPU_SHARE_FD: the block's; else -1 */
};
const struct gpu_device *gpu_store_device(const struct gpu_store *store);
/* Whether the memory's blocks can still be used. Error: GPU. */
int gpu_store_lives(const struct gpu_store *store, struct ckpt_err *err);

#endif
