/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name that a header holds twice. The reference implementation keeps the last entry. The same entry twice
 * says nothing else than once; two different ones would be read differently by different readers, so they are
 * refused.
 */
#include "base/quote.h"
#include "format/safetensors.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(const struct tensor *left, const struct tensor *right) {
    if (left->name_len != right->name_len)
        return left->name_len < right->name_len ? -1 : 1;
    return memcmp(left->name, right->name, left->name_len);
}

/* By name, then by place in the header. */
static int compare_members(const void *a, const void *b, void *arg) {
    const struct tensor *tensors = arg;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    int order = compare_names(&tensors[left], &tensors[right]);
    return order ? order : left < right ? -1 : 1;
}

static bool same_entry(const struct tensor *left, const struct tensor *right) {
    return left->dtype == right->dtype && left->offset == right->offset && left->size == right->size &&
           left->rank == right->rank && !memcmp(left->shape, right->shape, left->rank * sizeof *left->shape);
}

/* Marks the later one of two equal members by giving it no name. */
static int mark(struct tensor *tensors, const uint32_t *order, uint64_t count, struct ckpt_err *err) {
    uint64_t kept = 0;
    for (uint64_t i = 1; i < count; i++) {
        struct tensor *first = &tensors[order[kept]], *second = &tensors[order[i]];
        struct quoted name;
        if (compare_names(first, second) != 0)
            kept = i;
        else if (same_entry(first, second))
            second->name = NULL;
        else
            return err_set(err, CKPT_E_CORRUPT, "the header holds the key %s twice, with different entries",
                quote(&name, first->name, first->name_len));
    }
    return 0;
}

int safetensors_repeats(struct tensor *tensors, uint64_t *count, struct ckpt_err *err) {
    uint32_t *order = calloc(*count ? *count : 1, sizeof *order);
    if (!order)
        return err_set(
            err, CKPT_E_NOMEM, "no memory for the order of %llu tensors", (unsigned long long)*count);
    for (uint64_t i = 0; i < *count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, *count, sizeof *order, compare_members, tensors);
    int rc = mark(tensors, order, *count, err);
    free(order);
    if (rc)
        return rc;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < *count; i++)
        if (tensors[i].name)
            tensors[kept++] = tensors[i];
    *count = kept;
    return 0;
}
