/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver, found at run time: its calls, and its results as errors. */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include "base/err.h"
#include "gpu/cuda_abi.h"

#define DRIVER_POINTER(name, symbol, params) cuda_result(*name) params;
struct driver {
    CUDA_CALLS(DRIVER_POINTER)
    bool broken; /* a result said that the context is of no use any more */
};

/* Loads libcuda.so.1, finds every call and initializes the driver. It stays loaded. Errors: IO with os_errno
 * ENODEV (no library, a call that it lacks, no device) or EIO. */
int driver_open(struct driver *driver, struct ckpt_err *err);

/* 0 for a result of 0, else IO with os_errno ENODEV, ENOMEM or EIO; the message is what was called, with the
 * error's name after it. */
int driver_check(struct driver *driver, cuda_result result, struct ckpt_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
