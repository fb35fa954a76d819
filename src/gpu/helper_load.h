/* SPDX-License-Identifier: Apache-2.0 */
/* Loading one tensor after another: begin, fills, end. A failed step ends the load and frees what it took. */
#ifndef GPU_HELPER_LOAD_H
#define GPU_HELPER_LOAD_H

#include "gpu/helper_pool.h"

struct load {
    struct pool *pool;
    struct place *place; /* NULL: nothing is being loaded */
    struct gpu_begin want;
    enum dtype result;
    int kind; /* enum convert_kind, -1: the stored bytes go straight to their place */
    enum convert_to to;
    cuda_ptr staging; /* stored bytes that await conversion: all of a quantized tensor, else one half's */
    uint64_t filled;  /* stored bytes so far */
};

/* Each answers its request in *ret_reply. Errors: IO, with os_errno as in struct gpu_error. */
int load_begin(
    struct load *load, const struct gpu_begin *want, struct gpu_msg *ret_reply, struct ckpt_err *err);
int load_fill(
    struct load *load, const struct gpu_fill *fill, struct gpu_msg *ret_reply, struct ckpt_err *err);
/* *ret_fd is -1 or a descriptor that goes with the reply; the caller's. */
int load_end(struct load *load, uint64_t id, struct gpu_msg *ret_reply, int *ret_fd, struct ckpt_err *err);

/* True when that tensor was being loaded: now it is not, and *ret_given bytes went back to the device. */
bool load_drop(struct load *load, uint64_t id, uint64_t *ret_given);

#endif
