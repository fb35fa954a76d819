/* SPDX-License-Identifier: Apache-2.0 */
/* A run of a tensor's elements as float32: which stored bytes it takes, and what they mean. Where the bytes
 * come from is the caller's business. Pure, no allocation, no errors. */
#ifndef DEQUANT_VALUES_H
#define DEQUANT_VALUES_H

#include "dequant/dequant.h"

struct values {
    const struct tensor *tensor; /* quantized, or of a type that dtype_table says widens */
    uint64_t first, count;       /* elements */
    struct range ints, scales;   /* to be loaded, from the tensor's start; scales.len 0 when not quantized */
};

/* Elements [first, first + count) of the tensor, which has them; count is not 0. */
struct values values_of(const struct tensor *tensor, uint64_t first, uint64_t count);
/* Elements [skip, skip + count) of the run into out (4 * count bytes); ints and scales are what was loaded.
 */
void values_convert(const struct values *values, const uint8_t *ints, const uint8_t *scales, uint64_t skip,
    uint64_t count, uint8_t *out);

#endif
