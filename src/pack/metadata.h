/* SPDX-License-Identifier: Apache-2.0 */
/* The map of strings in a safetensors file: pairs in an order that stays. */
#ifndef PACK_METADATA_H
#define PACK_METADATA_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* Starts zeroed. */
struct metadata {
    struct ckpt_pair *pairs; /* owned; the texts are in the arena, each with a NUL after it */
    size_t count, cap;
    struct arena texts;
};

/* Adds a copy. Errors: NOMEM. */
int metadata_add(struct metadata *metadata, const char *key, size_t key_len, const char *value,
    size_t value_len, struct ckpt_err *err);
/*
 * Adds the members of a JSON object (or nothing of null); of several with one key the
 * last one, as every reader takes it. Values that are no strings, which only an index has, go into others
 * (NULL: in here, too) as JSON text. Errors: CORRUPT (it is malformed), NOMEM.
 */
int metadata_read(
    struct metadata *metadata, const char *json, size_t len, struct metadata *others, struct ckpt_err *err);
/*
 * Drops all pairs with a key but the last one of them. Each dropped value that differs from the one that
 * stays is told to differ (NULL allowed), once a key. Errors: NOMEM, and those of differ.
 */
typedef int metadata_differ(void *arg, const struct ckpt_pair *pair, struct ckpt_err *err);
int metadata_settle(struct metadata *metadata, metadata_differ *differ, void *arg, struct ckpt_err *err);
/* NULL: there is none. */
const struct ckpt_pair *metadata_find(const struct metadata *metadata, const char *key);
void metadata_free(struct metadata *metadata);

/* Whether all is UTF-8 and no key is there twice. Errors: INVAL, NOMEM. */
int pairs_check(const struct ckpt_pair *pairs, size_t count, struct ckpt_err *err);
/* As a JSON object. */
void pairs_put(struct buf *buf, const struct ckpt_pair *pairs, size_t count);
/* A copy in one piece of memory, to be freed with free(). Errors: NOMEM. */
int pairs_copy(
    const struct ckpt_pair *pairs, size_t count, struct ckpt_pair **ret_pairs, struct ckpt_err *err);

#endif
