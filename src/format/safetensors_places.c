/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quote.h"
#include "format/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>

/* By offset, empty ones first, so that an empty tensor may stand where another one starts. */
static int compare_places(const void *a, const void *b, void *arg) {
    const struct tensor *tensors = arg;
    const struct tensor *left = &tensors[*(const uint32_t *)a], *right = &tensors[*(const uint32_t *)b];
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return left->size < right->size ? -1 : left->size > right->size;
}

static const char *named(struct quoted *quoted, const struct tensor *tensor) {
    return quote(quoted, tensor->name, tensor->name_len);
}

static int check_end(
    const struct tensor *tensors, uint64_t count, uint64_t start, uint64_t size, struct ckpt_err *err) {
    const struct tensor *last = NULL;
    uint64_t highest = start;
    for (uint64_t i = 0; i < count; i++) {
        if (tensors[i].offset + tensors[i].size <= highest)
            continue;
        last = &tensors[i];
        highest = last->offset + last->size;
    }
    if (highest - start <= size)
        return 0;
    struct quoted name;
    return err_set(err, CKPT_E_CORRUPT,
        "tensor %s: data_offsets [%" PRIu64 ", %" PRIu64 "] pass the end of the data, which has %" PRIu64
        " bytes: truncated, %" PRIu64 " bytes are missing",
        named(&name, last), last->offset - start, highest - start, size, highest - start - size);
}

/* tensors in the order of their places. */
static int check_order(const struct tensor *tensors, const uint32_t *order, uint64_t count, uint64_t start,
    uint64_t size, struct ckpt_err *err) {
    uint64_t at = 0;
    const struct tensor *before = NULL;
    struct quoted name, other;
    for (uint64_t i = 0; i < count; i++) {
        const struct tensor *tensor = &tensors[order[i]];
        uint64_t begin = tensor->offset - start;
        if (begin > at)
            return err_set(err, CKPT_E_CORRUPT,
                "a hole of %" PRIu64 " bytes before tensor %s: data bytes [%" PRIu64 ", %" PRIu64
                "] belong to no tensor",
                begin - at, named(&name, tensor), at, begin);
        if (begin < at)
            return err_set(err, CKPT_E_CORRUPT,
                "tensor %s: data_offsets [%" PRIu64 ", %" PRIu64
                "] overlap those of tensor %s, which end at %" PRIu64,
                named(&name, tensor), begin, begin + tensor->size, named(&other, before), at);
        at = begin + tensor->size;
        before = tensor;
    }
    if (at < size)
        return err_set(err, CKPT_E_CORRUPT,
            "%" PRIu64 " bytes after the last tensor: data bytes [%" PRIu64 ", %" PRIu64
            "] belong to no tensor",
            size - at, at, size);
    return 0;
}

int safetensors_places(const struct tensor *tensors, uint64_t count, uint64_t data_start, uint64_t data_size,
    struct ckpt_err *err) {
    int rc = check_end(tensors, count, data_start, data_size, err);
    if (rc)
        return rc;
    uint32_t *order = calloc(count ? count : 1, sizeof *order);
    if (!order)
        return err_set(err, CKPT_E_NOMEM, "no memory for the order of %" PRIu64 " tensors", count);
    for (uint64_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, count, sizeof *order, compare_places, (void *)(uintptr_t)tensors);
    rc = check_order(tensors, order, count, data_start, data_size, err);
    free(order);
    return rc;
}
