/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/diff.h"

#include <stdlib.h>
#include <string.h>

int diff_run(struct diff *diff, const struct diff_side sides[2], const struct ckpt_write_options *options,
    struct ckpt_err *err) {
    int rc = diff_others(diff, sides, options, err);
    return rc ? rc : diff_tensors(diff, sides, options, err);
}

void diff_free(struct diff *diff) {
    for (int i = 0; i < GROUP_COUNT; i++)
        free(diff->groups[i].items);
    free(diff->others);
    arena_free(&diff->names);
    *diff = (struct diff){0};
}

/* ---- telling ------------------------------------------------------------------------------------------- */

static struct ckpt_difference_side side_of(const struct tensor *tensor) {
    if (!tensor)
        return (struct ckpt_difference_side){0};
    return (struct ckpt_difference_side){.dtype = dtype_table[tensor->dtype].name,
        .encoding = encoding_names[tensor->encoding],
        .shape = tensor->shape,
        .rank = tensor->rank,
        .bytes = tensor->size};
}

static void put_tally(struct ckpt_difference *difference, const struct diff_tensor *found) {
    const struct tally *tally = &found->tally;
    bool dense = found->a->encoding == ENCODING_DENSE && found->b->encoding == ENCODING_DENSE;
    difference->elements = tally->elements;
    difference->differing = tally->differing;
    difference->nans = tally->nans;
    difference->max_abs = tally->max;
    difference->mean_abs = compare_mean(tally);
    difference->exact =
        dense && compare_is_integer(found->a->dtype) && compare_is_integer(found->b->dtype) && !tally->over;
    difference->max_integer = difference->exact ? tally->max_integer : 0;
}

static bool same_shape(const struct tensor *a, const struct tensor *b) {
    return a->rank == b->rank && (!a->rank || !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape));
}

static struct ckpt_difference of_tensor(const char *place, const struct diff_tensor *found) {
    const struct tensor *a = found->a, *b = found->b, *named = a ? a : b;
    struct ckpt_difference difference = {.kind = !a   ? CKPT_ADDED
                                                 : !b ? CKPT_REMOVED
                                                      : CKPT_CHANGED,
        .place = place,
        .name = named->name,
        .name_len = named->name_len,
        .a = side_of(a),
        .b = side_of(b),
        .compared = found->compared};
    if (a && b) {
        difference.reshaped = !same_shape(a, b);
        difference.retyped = a->dtype != b->dtype || a->encoding != b->encoding;
    }
    if (found->compared)
        put_tally(&difference, found);
    return difference;
}

uint64_t diff_tell(
    const struct diff *diff, void (*tell)(void *arg, const struct ckpt_difference *difference), void *arg) {
    static const char *const places[GROUP_COUNT] = {"tensors", "state", "optimizer"};
    uint64_t count = diff->other_count;
    for (size_t i = 0; tell && i < diff->other_count; i++)
        tell(arg, &diff->others[i]);
    for (int g = 0; g < GROUP_COUNT; g++)
        for (uint64_t i = 0; i < diff->groups[g].count; i++) {
            const struct diff_tensor *found = &diff->groups[g].items[i];
            if (found->same)
                continue;
            const struct ckpt_difference difference = of_tensor(places[g], found);
            if (tell)
                tell(arg, &difference);
            count++;
        }
    return count;
}
