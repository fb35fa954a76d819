/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "pack/quantize_kernel.h"

#include "hash/cpu.h"

const struct quantize_kernel *quantize_kernel(void) {
#ifdef HAVE_X86_KERNELS
    if (cpu_features() & CPU_AVX2)
        return &quantize_avx2;
#endif
    return &quantize_portable;
}
