/* SPDX-License-Identifier: Apache-2.0 */
#include "dequant/values.h"

#define SCALE_BYTES 4

static unsigned dense_bytes(const struct tensor *tensor) {
    return dtype_table[tensor->dtype].bits / 8;
}

/* All blocks' integers come first in the tensor's bytes, then all scales. */
static struct values quantized(const struct tensor *tensor, uint64_t first, uint64_t count) {
    uint64_t width = dequant_block_bytes(tensor->encoding);
    uint64_t total = tensor->elements / DEQUANT_BLOCK + (tensor->elements % DEQUANT_BLOCK != 0);
    uint64_t block = first / DEQUANT_BLOCK, blocks = (first + count - 1) / DEQUANT_BLOCK + 1 - block;
    return (struct values){
        .tensor = tensor,
        .first = first,
        .count = count,
        .ints = {block * width, blocks * width},
        .scales = {total * width + block * SCALE_BYTES, blocks * SCALE_BYTES},
    };
}

struct values values_of(const struct tensor *tensor, uint64_t first, uint64_t count) {
    if (tensor->encoding != ENCODING_DENSE)
        return quantized(tensor, first, count);
    uint64_t width = dense_bytes(tensor);
    return (struct values){
        .tensor = tensor, .first = first, .count = count, .ints = {first * width, count * width}};
}

void values_convert(const struct values *values, const uint8_t *ints, const uint8_t *scales, uint64_t skip,
    uint64_t count, uint8_t *out) {
    const struct tensor *tensor = values->tensor;
    if (tensor->encoding == ENCODING_DENSE) {
        widen(tensor->dtype, ints + skip * dense_bytes(tensor), count, out);
        return;
    }
    uint64_t at = values->first % DEQUANT_BLOCK + skip, block = at / DEQUANT_BLOCK;
    ints += block * dequant_block_bytes(tensor->encoding);
    scales += block * SCALE_BYTES;
    if (tensor->encoding == ENCODING_Q4)
        dequant_q4(ints, scales, at % DEQUANT_BLOCK, count, out);
    else
        dequant_q8(ints, scales, at % DEQUANT_BLOCK, count, out);
}
