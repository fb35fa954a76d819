/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/match.h"

#include <stdlib.h>
#include <string.h>

struct named {
    const struct tensor *tensor;
    uint64_t number;
};

static int by_name(const struct tensor *a, const struct tensor *b) {
    uint32_t common = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, common);
    return order ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static int by_name_and_number(const void *left, const void *right) {
    const struct named *a = left, *b = right;
    int order = by_name(a->tensor, b->tensor);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static struct named *sorted(const struct group *group) {
    struct named *list = calloc((size_t)group->count + 1, sizeof *list);
    for (uint64_t i = 0; list && i < group->count; i++)
        list[i] = (struct named){&group->items[i], i};
    if (list)
        qsort(list, (size_t)group->count, sizeof *list, by_name_and_number);
    return list;
}

static uint64_t *nobody(uint64_t count) {
    uint64_t *partners = calloc((size_t)count + 1, sizeof *partners);
    for (uint64_t i = 0; partners && i < count; i++)
        partners[i] = MATCH_NONE;
    return partners;
}

static void merge(const struct named *a, uint64_t a_count, const struct named *b, uint64_t b_count,
    const struct match *match) {
    for (uint64_t i = 0, j = 0; i < a_count && j < b_count;) {
        int order = by_name(a[i].tensor, b[j].tensor);
        if (order == 0) {
            match->partner_of_a[a[i].number] = b[j].number;
            match->partner_of_b[b[j].number] = a[i].number;
        }
        i += order <= 0;
        j += order >= 0;
    }
}

int match_make(const struct group *a, const struct group *b, struct match *ret_match, struct ckpt_err *err) {
    struct named *list_a = sorted(a), *list_b = sorted(b);
    struct match match = {nobody(a->count), nobody(b->count)};
    int rc = 0;
    if (list_a && list_b && match.partner_of_a && match.partner_of_b) {
        merge(list_a, a->count, list_b, b->count, &match);
        *ret_match = match;
    } else {
        rc = err_set(err, CKPT_E_NOMEM, "no memory to match %llu and %llu tensors",
            (unsigned long long)a->count, (unsigned long long)b->count);
        match_free(&match);
    }
    free(list_a);
    free(list_b);
    return rc;
}

void match_free(struct match *match) {
    free(match->partner_of_a);
    free(match->partner_of_b);
    *match = (struct match){0};
}
