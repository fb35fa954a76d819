/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels: gpu/convert.h over a grid. in, scales and out are aligned to 16 bytes and more. */
#include "gpu/convert.h"

#define KERNEL(kind, name)                                                                                   \
    extern "C" __global__ void name(                                                                         \
        const void *in, const void *scales, void *out, uint64_t count, uint32_t to) {                        \
        uint64_t step = (uint64_t)gridDim.x * blockDim.x;                                                    \
        for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)             \
            convert_store((enum convert_to)to, out, i, convert_value(CONVERT_##kind, in, scales, i));        \
    }

CONVERT_KINDS(KERNEL)
