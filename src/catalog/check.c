/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/catalog.h"

#include "base/ovf.h"

#include <stdlib.h>

/* ---- one tensor ------------------------------------------------------------------------------------- */

#define QUANT_BLOCK 32      /* elements */
#define QUANT_SCALE_BYTES 4 /* one float32 a block */
#define QUANT_Q4_BYTES 16   /* of a block's integers */
#define QUANT_Q8_BYTES 32

/* Left to right: a 0 makes everything after it harmless, but nothing before it. */
static bool count_elements(struct tensor *tensor) {
    uint64_t elements = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!ovf_mul(elements, tensor->shape[i], &elements))
            return false;
    tensor->elements = elements;
    return true;
}

static enum tensor_fault dense_bytes(const struct tensor *tensor, uint64_t *ret_bytes) {
    unsigned bits = dtype_table[tensor->dtype].bits;
    bool whole = bits % 8 == 0; /* then counted in bytes, which go further */
    uint64_t product;
    if (!ovf_mul(tensor->elements, whole ? bits / 8 : bits, &product))
        return TENSOR_DENSE_OVERFLOW;
    if (tensor->block)
        return TENSOR_BLOCK;
    if (!whole && product % 8)
        return TENSOR_PARTIAL_BYTE;
    *ret_bytes = whole ? product : product / 8;
    return TENSOR_OK;
}

static enum tensor_fault quant_bytes(const struct tensor *tensor, uint64_t *ret_bytes) {
    uint64_t integers = tensor->encoding == ENCODING_Q4 ? QUANT_Q4_BYTES : QUANT_Q8_BYTES;
    if (tensor->dtype != DTYPE_F32 || tensor->block != QUANT_BLOCK || !tensor->elements)
        return TENSOR_QUANT_LAYOUT;
    uint64_t blocks = (tensor->elements - 1) / QUANT_BLOCK + 1;
    return ovf_mul(blocks, integers + QUANT_SCALE_BYTES, ret_bytes) ? TENSOR_OK : TENSOR_QUANT_OVERFLOW;
}

enum tensor_fault tensor_check(struct tensor *tensor, uint64_t *ret_bytes) {
    uint64_t bytes;
    if (!count_elements(tensor))
        return TENSOR_ELEMENTS;
    enum tensor_fault fault =
        tensor->encoding == ENCODING_DENSE ? dense_bytes(tensor, &bytes) : quant_bytes(tensor, &bytes);
    if (fault)
        return fault;
    *ret_bytes = bytes;
    return tensor->size == bytes ? TENSOR_OK : TENSOR_SIZE;
}

/* ---- many ranges ------------------------------------------------------------------------------------ */

struct placed {
    struct range at;
    uint64_t index;
};

static int by_place(const void *left, const void *right) {
    const struct placed *a = left, *b = right;
    if (a->at.off != b->at.off)
        return a->at.off < b->at.off ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static uint64_t copy_filled(const struct range *ranges, uint64_t count, struct placed *placed) {
    uint64_t filled = 0;
    for (uint64_t i = 0; i < count; i++)
        if (ranges[i].len)
            placed[filled++] = (struct placed){.at = ranges[i], .index = i};
    return filled;
}

bool ranges_overlap(
    const struct range *ranges, uint64_t count, uint64_t *ret_a, uint64_t *ret_b, int *ret_rc) {
    uint64_t bytes;
    bool fits = ovf_mul(ovf_max(count, 1), sizeof(struct placed), &bytes) && bytes <= SIZE_MAX;
    struct placed *placed = fits ? malloc(bytes) : NULL;
    *ret_rc = placed ? 0 : CKPT_E_NOMEM;
    if (!placed)
        return false;
    uint64_t filled = copy_filled(ranges, count, placed);
    qsort(placed, filled, sizeof *placed, by_place);
    uint64_t i = 1; /* where sorted neighbours do not overlap, no two ranges do */
    while (i < filled && placed[i].at.off - placed[i - 1].at.off >= placed[i - 1].at.len)
        i++;
    bool found = i < filled;
    if (found) {
        *ret_a = placed[i - 1].index;
        *ret_b = placed[i].index;
    }
    free(placed);
    return found;
}
