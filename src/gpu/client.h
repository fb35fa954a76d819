/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device of a mount: tensors are borrowed from it and given back. One thread of its own talks to the
 * helper, which it starts when it is first needed and again after it has failed; whoever borrows waits for
 * its news and can stop waiting at any time. No lock is held while anything is read, copied or waited for.
 *
 * Threads: every call but gpu_new and gpu_free from any thread.
 */
#ifndef GPU_CLIENT_H
#define GPU_CLIENT_H

#include "gpu/load.h"

struct gpu;
struct gpu_loan; /* one opener's hold */

struct gpu_setup {
    struct gpu_source source;
    const struct group *tensors; /* outlives the gpu */
    const char *helper;          /* the program; texts are copied */
    const char *device;          /* the helper's selector */
    const char *sockets;         /* where the directory of the socket is made */
    enum gpu_target target;
    enum gpu_share share;
    bool limited; /* budget counts; else nine tenths of what the device has */
    uint64_t budget;
    int start_ms, reply_ms; /* deadlines */
    struct ckpt_log log;
};

/* Starts nothing. Errors: NOMEM. */
int gpu_new(const struct gpu_setup *setup, struct gpu **ret_gpu, struct ckpt_err *err);
/* Everything was given back; ends the helper and the thread. NULL is allowed. */
void gpu_free(struct gpu *gpu);

struct gpu_place {
    const struct tensor *tensor;
    struct gpu_device device;
    struct loaded loaded;       /* its descriptor stays the loan's */
    const char *socket, *token; /* GPU_SHARE_FD: who sends the token there gets the descriptor; the loan's */
};

/*
 * Puts a tensor (by number) onto the device, or joins those who have it there or wait for it; returns when it
 * can be used. Errors: GPU (ENODEV, ENOMEM, ETIMEDOUT, EIO), those of the source, INTR, NOMEM.
 */
int gpu_borrow(struct gpu *gpu, uint64_t number, const struct ckpt_cancel *cancel,
    struct gpu_place *ret_place, struct gpu_loan **ret_loan, struct ckpt_err *err);
void gpu_give_back(struct gpu *gpu, struct gpu_loan *loan); /* waits for nobody */

struct gpu_facts {
    struct gpu_device device;
    struct gpu_memory memory; /* while a tensor is being loaded: as of before, and what was taken since */
    bool limited;
    uint64_t budget; /* when limited */
};

/* Starts the helper, too, but waits for no load. Errors: GPU, INTR, NOMEM. */
int gpu_describe(
    struct gpu *gpu, const struct ckpt_cancel *cancel, struct gpu_facts *ret_facts, struct ckpt_err *err);

#endif
