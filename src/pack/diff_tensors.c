/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ovf.h"
#include "base/quote.h"
#include "pack/diff.h"
#include "pack/lane.h"
#include "pack/match.h"
#include "pack/out.h"

#include <stdlib.h>
#include <string.h>

/* ---- one pair ------------------------------------------------------------------------------------------ */

struct comparing {
    const struct diff_side *sides;
    struct lane a, b;
    const struct ckpt_write_options *options;
    uint64_t done, total; /* bytes of both */
};

static bool same_type(const struct tensor *a, const struct tensor *b) {
    return a->dtype == b->dtype && a->encoding == b->encoding;
}

static bool same_shape(const struct tensor *a, const struct tensor *b) {
    return a->rank == b->rank && (!a->rank || !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape));
}

static int failed(const struct lane *lane, int rc, struct ckpt_err *err) {
    struct quoted quoted;
    return err_wrap(err, rc, "%s: tensor %s", lane->source->name,
        quote(&quoted, lane->tensor->name, lane->tensor->name_len));
}

static void tell(struct comparing *c, uint64_t bytes) {
    c->done += bytes;
    out_tell(c->options, ovf_min(c->done, c->total), c->total);
}

static int load_both(struct comparing *c, uint64_t off, size_t len, struct ckpt_err *err) {
    int rc = out_stop(c->options, err);
    if (!rc && (rc = lane_load(&c->a, off, len, err)))
        return failed(&c->a, rc, err);
    if (!rc && (rc = lane_load(&c->b, off, len, err)))
        return failed(&c->b, rc, err);
    tell(c, 2 * len);
    return rc;
}

static int values_of_both(
    struct comparing *c, uint64_t first, uint64_t count, const uint8_t *ret_values[2], struct ckpt_err *err) {
    int rc = out_stop(c->options, err);
    if (!rc && (rc = lane_values(&c->a, first, count, &ret_values[0], err)))
        return failed(&c->a, rc, err);
    if (!rc && (rc = lane_values(&c->b, first, count, &ret_values[1], err)))
        return failed(&c->b, rc, err);
    return rc;
}

/* Of different types, or quantized and not the same. */
static int compare_values(struct comparing *c, struct tally *tally, struct ckpt_err *err) {
    const struct tensor *a = c->a.tensor, *b = c->b.tensor;
    int rc = 0;
    for (uint64_t at = 0, count; !rc && at < a->elements; at += count) {
        const uint8_t *values[2];
        count = ovf_min(LANE_ELEMENTS, a->elements - at);
        rc = values_of_both(c, at, count, values, err);
        if (!rc)
            compare(lane_dtype(a), values[0], lane_dtype(b), values[1], count, tally);
        tell(c, (a->size + b->size) / a->elements * count);
    }
    return rc;
}

/* Dense, of one type: what is stored tells of most pieces that they are the same. */
static int compare_dense(struct comparing *c, struct diff_tensor *found, struct ckpt_err *err) {
    enum dtype type = lane_dtype(found->a);
    uint64_t width = dtype_table[found->a->dtype].bits / 8, elements = found->a->elements;
    int rc = 0;
    for (uint64_t at = 0, count; !rc && at < elements; at += count) {
        count = ovf_min(LANE_ELEMENTS, elements - at);
        size_t len = (size_t)(count * width);
        rc = load_both(c, at * width, len, err);
        if (rc)
            return rc;
        bool same = memcmp(c->a.stored, c->b.stored, len) == 0;
        found->same = found->same && same;
        if (same)
            compare_same(count, &found->tally);
        else
            compare(
                type, lane_widen(&c->a, at, count), type, lane_widen(&c->b, at, count), count, &found->tally);
    }
    return rc;
}

/* Whether what is stored is the same. */
static int compare_bytes(struct comparing *c, bool *ret_same, struct ckpt_err *err) {
    uint64_t size = c->a.tensor->size;
    bool same = size == c->b.tensor->size;
    int rc = 0;
    for (uint64_t at = 0, len; !rc && same && at < size; at += len) {
        len = ovf_min(LANE_BYTES, size - at);
        rc = load_both(c, at, (size_t)len, err);
        same = !rc && memcmp(c->a.stored, c->b.stored, (size_t)len) == 0;
    }
    *ret_same = same;
    return rc;
}

static int compare_pair(struct comparing *c, struct diff_tensor *found, struct ckpt_err *err) {
    const struct tensor *a = found->a, *b = found->b;
    bool typed = same_type(a, b), values = lane_has_values(a) && lane_has_values(b);
    bool same_bytes = false;
    int rc = 0;
    lane_take(&c->a, c->sides[0].catalog, a);
    lane_take(&c->b, c->sides[1].catalog, b);
    found->same = typed && same_shape(a, b);
    found->compared = values && a->elements == b->elements;
    if (found->compared && typed && a->encoding == ENCODING_DENSE)
        return compare_dense(c, found, err);
    if (typed)
        rc = compare_bytes(c, &same_bytes, err);
    found->same = found->same && same_bytes;
    if (rc || !found->compared)
        return rc;
    if (same_bytes)
        compare_same(a->elements, &found->tally);
    return same_bytes ? 0 : compare_values(c, &found->tally, err);
}

/* ---- all pairs ----------------------------------------------------------------------------------------- */

/* The pairs by their places in one of the files, so that it is read from its start to its end: the one whose
 * sections are hashed as they are read, if there is one. */
struct order {
    uint64_t off;
    struct diff_tensor *found;
};

static int by_offset(const void *left, const void *right) {
    const struct order *a = left, *b = right;
    return (a->off > b->off) - (a->off < b->off);
}

static uint64_t list_pairs(
    const struct diff *diff, const struct diff_side sides[2], struct order *list, uint64_t *ret_bytes) {
    const struct catalog *a = sides[0].catalog, *b = sides[1].catalog;
    bool by_a = catalog_digest(a) == DIGEST_FNV1A64;
    uint64_t count = 0, bytes = 0;
    for (int g = 0; g < GROUP_COUNT; g++)
        for (uint64_t i = 0; i < diff->groups[g].count; i++) {
            struct diff_tensor *found = &diff->groups[g].items[i];
            if (!found->a || !found->b)
                continue;
            bytes += found->a->size + found->b->size; /* for progress only */
            list[count++] =
                (struct order){by_a ? tensor_range(a, found->a).off : tensor_range(b, found->b).off, found};
        }
    qsort(list, (size_t)count, sizeof *list, by_offset);
    *ret_bytes = bytes;
    return count;
}

static int fill_group(
    struct diff_group *to, const struct group *a, const struct group *b, struct ckpt_err *err) {
    struct match match = {0};
    int rc = match_make(a, b, &match, err);
    if (!rc && !(to->items = calloc((size_t)(a->count + b->count) + 1, sizeof *to->items)))
        rc = err_set(err, CKPT_E_NOMEM, "no memory for what is found of %llu tensors",
            (unsigned long long)(a->count + b->count));
    for (uint64_t i = 0; !rc && i < a->count; i++) {
        uint64_t partner = match.partner_of_a[i];
        to->items[to->count++] =
            (struct diff_tensor){.a = &a->items[i], .b = partner == MATCH_NONE ? NULL : &b->items[partner]};
    }
    for (uint64_t i = 0; !rc && i < b->count; i++)
        if (match.partner_of_b[i] == MATCH_NONE)
            to->items[to->count++] = (struct diff_tensor){.b = &b->items[i]};
    match_free(&match);
    return rc;
}

int diff_tensors(struct diff *diff, const struct diff_side sides[2], const struct ckpt_write_options *options,
    struct ckpt_err *err) {
    struct comparing c = {.sides = sides, .options = options};
    uint64_t most = 0;
    int rc = 0;
    for (int g = 0; !rc && g < GROUP_COUNT; g++) {
        rc = fill_group(&diff->groups[g], &sides[0].catalog->groups[g], &sides[1].catalog->groups[g], err);
        most += diff->groups[g].count;
    }
    struct order *list = rc ? NULL : calloc((size_t)most + 1, sizeof *list);
    if (!rc && !list)
        rc = err_set(err, CKPT_E_NOMEM, "no memory to sort %llu tensors", (unsigned long long)most);
    if (!rc)
        rc = lane_open(sides[0].source, &c.a, err);
    if (!rc)
        rc = lane_open(sides[1].source, &c.b, err);
    if (!rc) {
        uint64_t count = list_pairs(diff, sides, list, &c.total);
        for (uint64_t i = 0; !rc && i < count; i++)
            rc = compare_pair(&c, list[i].found, err);
    }
    lane_close(&c.a);
    lane_close(&c.b);
    free(list);
    return rc;
}
