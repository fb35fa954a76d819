/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for a parameter store: made, written and read at will. A failed step leaves it where it is. */
#ifndef GPU_HELPER_STORE_H
#define GPU_HELPER_STORE_H

#include "gpu/helper_pool.h"

/* Each answers its request in *ret_reply. Errors: IO, with os_errno as in struct gpu_error. */
/* *ret_fd is -1 or a descriptor that goes with the reply; the caller's. */
int store_make(struct pool *pool, const struct gpu_make *make, struct gpu_msg *ret_reply, int *ret_fd,
    struct ckpt_err *err);
int store_write(
    struct pool *pool, const struct gpu_fill *write, struct gpu_msg *ret_reply, struct ckpt_err *err);
int store_read(
    struct pool *pool, const struct gpu_fill *read, struct gpu_msg *ret_reply, struct ckpt_err *err);

#endif
