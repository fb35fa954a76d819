/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of quantizing; quantize_kernel.c chooses one by what the CPU has. Pure. */
#ifndef PACK_QUANTIZE_KERNEL_H
#define PACK_QUANTIZE_KERNEL_H

#include "config.h"

#include <stddef.h>
#include <stdint.h>

#define QUANTIZE_BLOCK 32
#define QUANTIZE_BLOCK_BYTES (4 * QUANTIZE_BLOCK) /* of float32 */
#define QUANTIZE_SCALE_BYTES 4

/*
 * `blocks` blocks of little-endian float32 at `in`, which needs no alignment, into their integers and their
 * scales (little-endian float32). m is the largest finite |value| of a block, scale = m / top, 1 when that is
 * not positive and finite; q = value / scale, both rounded to float32, then to the nearest integer, halves to
 * the even one, and clamped to +-top. Values that are not finite count as 0.
 * q4: top 7, 16 bytes a block, q + 7 in a nibble; q8: top 127, 32 bytes.
 */
typedef void quantize_fn(const uint8_t *in, size_t blocks, uint8_t *ints, uint8_t *scales);

struct quantize_kernel {
    quantize_fn *q4, *q8;
};

extern const struct quantize_kernel quantize_portable;
#ifdef HAVE_X86_KERNELS
extern const struct quantize_kernel quantize_avx2;
#endif

/* The fastest that this CPU has (hash/cpu.h). */
const struct quantize_kernel *quantize_kernel(void);

#endif
