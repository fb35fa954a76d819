/* SPDX-License-Identifier: Apache-2.0 */
/* gpu/: the tree's device, made of the GPU client; which tensors it has, and how they are read. */
#ifndef GPU_FILES_H
#define GPU_FILES_H

#include "catalog/catalog.h"
#include "tree/device.h"
#include "verify/guard.h"

struct gpu_files;

/* catalog and guard outlive it. Starts nothing. Errors: NOMEM. */
int gpu_files_new(const struct ckpt_gpu_options *options, const struct ckpt_log *log,
    const struct catalog *catalog, struct guard *guard, struct gpu_files **ret_files, struct ckpt_err *err);
void gpu_files_free(struct gpu_files *files); /* after the tree; NULL is allowed */

/* NULL for NULL. */
const struct tree_device *gpu_files_device(const struct gpu_files *files);

#endif
