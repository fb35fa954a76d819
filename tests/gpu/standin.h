/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcuda.so.1: device memory is host memory, kernels run on the host. It proves what the
 * helper does, not what a device does. It is stricter than a driver: copies and kernels wait until somebody
 * waits for them, so that whoever forgets to is found out, and each must lie within one allocation.
 *
 * CKPTFS_STANDIN_MEMORY=BYTES  what the device has (1 GiB)
 * CKPTFS_STANDIN_DEVICES=N     how many devices there are (2)
 * CKPTFS_STANDIN_FAIL=LIST     calls that go wrong, "NAME:N:WHAT" with commas between: the Nth call of NAME
 * (0: each one) in a process gives the result WHAT, or never returns ("hang"), or ends the process ("die").
 * "@FILE": the list is in FILE, which is read at each call.
 */
#ifndef TESTS_GPU_STANDIN_H
#define TESTS_GPU_STANDIN_H

#include "gpu/cuda_abi.h"

#include <stdbool.h>

#define STANDIN_INVALID_VALUE 1
#define STANDIN_NOT_INITIALIZED 3
#define STANDIN_INVALID_CONTEXT 201
#define STANDIN_NOT_FOUND 500

/* What every call asks first: 0, or the result that it must give. */
cuda_result standin_enter(const char *call);
#define ENTER(call)                                                                                          \
    do {                                                                                                     \
        cuda_result entered_ = standin_enter(#call);                                                         \
        if (entered_)                                                                                        \
            return entered_;                                                                                 \
    } while (0)

/* The context that is current in this thread, or no device is of use. */
bool standin_has_context(void);

/* True when [at, at + bytes) lies within one live and accessible allocation. */
bool standin_inside(cuda_ptr at, uint64_t bytes);

/* Does everything that was started. */
void standin_finish_all(void);

/* ---- the calls that the helper does not make, but who opens its memory does ---------------------------- */

cuda_result cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags, int *status);
cuda_result cuIpcOpenMemHandle_v2(cuda_ptr *at, struct cuda_ipc_handle handle, unsigned flags);
cuda_result cuIpcCloseMemHandle(cuda_ptr at);
cuda_result cuMemImportFromShareableHandle(cuda_alloc *alloc, void *fd, int type);
cuda_result cuMemcpyDtoH_v2(void *to, cuda_ptr from, size_t bytes);
cuda_result cuMemcpyDtoDAsync_v2(cuda_ptr to, cuda_ptr from, size_t bytes, cuda_stream stream);
cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device device);
cuda_result cuCtxPushCurrent_v2(cuda_ctx ctx);
cuda_result cuCtxPopCurrent_v2(cuda_ctx *ctx);

#define STANDIN_DECLARE(name, symbol, params) cuda_result symbol params;
CUDA_CALLS(STANDIN_DECLARE)

#endif
