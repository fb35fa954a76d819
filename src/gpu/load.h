/* SPDX-License-Identifier: Apache-2.0 */
/* One tensor's way onto the device: its bytes are read into one half of the window while the helper copies
 * the other. */
#ifndef GPU_LOAD_H
#define GPU_LOAD_H

#include "gpu/session.h"

/* Where tensors come from. Both are called by one thread at a time and may take long. */
struct gpu_source {
    void *arg;
    /* Before the first byte: is the tensor what the digests vouch for, as far as its index goes? */
    int (*vouch)(
        void *arg, const struct tensor *tensor, const struct ckpt_cancel *cancel, struct ckpt_err *err);
    /* len verified stored bytes from byte off of the tensor on. */
    int (*read)(void *arg, const struct tensor *tensor, uint64_t off, void *buf, size_t len,
        const struct ckpt_cancel *cancel, struct ckpt_err *err);
};

struct load {
    const struct gpu_source *source;
    const struct tensor *tensor;
    uint64_t id;
    enum gpu_target target;
    enum gpu_share share;
    const struct ckpt_cancel *cancel;
};

struct loaded {
    enum dtype dtype; /* on the device */
    struct gpu_ready at;
    int fd; /* GPU_SHARE_FD: owned; else -1 */
};

/* Whether the tensor's type and size can be told; its bytes on the device then. */
bool load_bytes(const struct tensor *tensor, enum gpu_target target, uint64_t *ret_bytes);

/* Takes the device's memory; *ret_taken: how much anew. Errors: GPU (ENOMEM: the device is full; nothing has
 * changed then), ... */
int load_begin(struct session *session, const struct load *load, uint64_t *ret_taken, struct ckpt_err *err);
/*
 * Fills it. On failure nothing of the tensor is left on the device, and *ret_given tells how much memory went
 * back (unless the session broke). Errors: those of the source, INTR, GPU.
 */
int load_fill(struct session *session, const struct load *load, struct loaded *ret_loaded,
    uint64_t *ret_given, struct ckpt_err *err);
/* Gives a tensor's memory back. Errors: GPU, with the session broken. */
int load_release(struct session *session, uint64_t id, uint64_t *ret_given, struct ckpt_err *err);

#endif
