/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/witness.h"

#include <stdatomic.h>
#include <stdlib.h>

struct witness {
    struct source *source; /* what readers see */
    struct source *under;
    struct block_key key;
    struct testimony *list; /* by offset once sealed */
    size_t count, cap;
    uint64_t longest; /* bytes of the longest testimony: bounds how far back one may begin */
    atomic_bool sealed;
};

struct witness_source {
    struct source source;
    struct witness *witness;
};

static struct witness *witness_of(struct source *source) {
    return ((struct witness_source *)source)->witness;
}

static int record(
    struct witness *witness, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err) {
    if (witness->count == witness->cap) {
        size_t cap = witness->cap ? witness->cap * 2 : 32;
        struct testimony *list = reallocarray(witness->list, cap, sizeof *list);
        if (!list)
            return err_set(err, CKPT_E_NOMEM, "no memory for %zu records of what was parsed", cap);
        witness->list = list;
        witness->cap = cap;
    }
    witness->list[witness->count++] =
        (struct testimony){.at = {off, len}, .digest = witness_digest(witness, bytes, len)};
    if (len > witness->longest)
        witness->longest = len;
    return 0;
}

static int witness_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    struct witness *witness = witness_of(source);
    size_t got;
    int rc = witness->under->ops->pread(witness->under, off, buf, len, &got, err);
    if (rc == 0 && got > 0 && !atomic_load_explicit(&witness->sealed, memory_order_acquire))
        rc = record(witness, off, buf, got, err);
    if (rc == 0)
        *ret_len = got;
    return rc;
}

static int witness_stat(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err) {
    struct source *under = witness_of(source)->under;
    return under->ops->stat(under, ret_stat, err);
}

static void witness_advise(struct source *source, uint64_t off, uint64_t len, bool needed) {
    source_advise(witness_of(source)->under, off, len, needed);
}

static int witness_sibling(
    struct source *source, const char *name, struct source **ret_source, struct ckpt_err *err) {
    return source_sibling(witness_of(source)->under, name, ret_source, err);
}

static int witness_unchanged(struct source *source, struct ckpt_err *err) {
    return source_unchanged(witness_of(source)->under, err);
}

static void witness_close(struct source *source) {
    source_close(witness_of(source)->under);
}

static const struct source_ops witness_ops = {
    .pread = witness_pread,
    .stat = witness_stat,
    .advise = witness_advise,
    .sibling = witness_sibling,
    .unchanged = witness_unchanged,
    .close = witness_close,
};

static int open_source(struct witness *witness, struct ckpt_err *err) {
    const struct source *under = witness->under;
    int rc = source_new(sizeof(struct witness_source), &witness_ops, under->name, &witness->source, err);
    if (rc)
        return rc;
    witness->source->size = under->size;
    witness->source->opened = under->opened;
    ((struct witness_source *)witness->source)->witness = witness;
    return 0;
}

int witness_new(struct source *under, struct witness **ret_witness, struct ckpt_err *err) {
    struct witness *witness = calloc(1, sizeof *witness);
    if (!witness)
        return err_set(err, CKPT_E_NOMEM, "no memory to watch %s", under->name);
    witness->under = under;
    int rc = block_key_new(&witness->key, err);
    if (!rc)
        rc = open_source(witness, err);
    if (rc) {
        free(witness);
        return rc;
    }
    *ret_witness = witness;
    return 0;
}

struct source *witness_source(struct witness *witness) {
    return witness->source;
}

static int by_offset(const void *a, const void *b) {
    const struct testimony *x = a, *y = b;
    if (x->at.off != y->at.off)
        return x->at.off < y->at.off ? -1 : 1;
    if (x->at.len != y->at.len)
        return x->at.len < y->at.len ? -1 : 1;
    return (x->digest > y->digest) - (x->digest < y->digest);
}

/* A range that was read twice with the same outcome is one testimony; with two outcomes it stays two. */
void witness_seal(struct witness *witness) {
    if (witness->count)
        qsort(witness->list, witness->count, sizeof *witness->list, by_offset);
    size_t kept = 0;
    for (size_t i = 0; i < witness->count; i++)
        if (kept == 0 || by_offset(&witness->list[kept - 1], &witness->list[i]) != 0)
            witness->list[kept++] = witness->list[i];
    witness->count = kept;
    atomic_store_explicit(&witness->sealed, true, memory_order_release);
}

void witness_free(struct witness *witness) {
    if (!witness)
        return;
    free(witness->list);
    free(witness);
}

/* The first testimony that begins at or after off. */
static size_t first_from(const struct witness *witness, uint64_t off) {
    size_t low = 0, high = witness->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (witness->list[mid].at.off < off)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool witness_recall(
    const struct witness *witness, struct range range, uint64_t n, struct testimony *ret_testimony) {
    if (range.len == 0)
        return false;
    size_t i = first_from(witness, range.off > witness->longest ? range.off - witness->longest : 0);
    for (; i < witness->count; i++) {
        const struct testimony *one = &witness->list[i];
        if (one->at.off >= range.off && one->at.off - range.off >= range.len)
            return false;
        bool touches = one->at.off >= range.off || range.off - one->at.off < one->at.len;
        if (!touches || n-- > 0)
            continue;
        *ret_testimony = *one;
        return true;
    }
    return false;
}

uint64_t witness_digest(const struct witness *witness, const void *bytes, size_t len) {
    return block_digest(&witness->key, bytes, len);
}
