/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digests of checkpoints (a table) and the keyed digest of served blocks.
 * Threads: a state belongs to one thread at a time; everything else is pure.
 */
#ifndef HASH_HASH_H
#define HASH_HASH_H

#include "base/err.h"

enum hash_kind { HASH_FNV1A64, HASH_SHA256, HASH_KIND_COUNT };

#define HASH_DIGEST_MAX 32

struct hash_state; /* opaque */

struct hash_info {
    const char *name; /* "fnv1a64", "sha256": the prefix of a digest in text */
    unsigned digest_bytes;
};
extern const struct hash_info hash_table[HASH_KIND_COUNT];

/* A streaming digest. Errors: NOMEM, UNSUPPORTED (the crypto library has no such digest). FNV-1a digests are
 * written big-endian (the order of their hex form). */
int hash_new(enum hash_kind kind, struct hash_state **ret_state, struct ckpt_err *err);
void hash_reset(struct hash_state *state);
void hash_update(struct hash_state *state, const void *bytes, size_t len);
/* SHA-256: all zeros when the crypto library failed, which no content is known to have. */
void hash_final(struct hash_state *state, uint8_t digest[HASH_DIGEST_MAX]);
/* For who is to write a SHA-256 digest: NOMEM when it is none. */
int hash_check(const uint8_t digest[HASH_DIGEST_MAX], struct ckpt_err *err);
void hash_free(struct hash_state *state);
/* The digest of bytes at hand. Errors as hash_new. */
int hash_bytes(enum hash_kind kind, const void *bytes, size_t len, uint8_t digest[HASH_DIGEST_MAX],
    struct ckpt_err *err);

#endif
