/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness: readers parse at opening, before anything is verified. A witness stands between them and the
 * source and keeps a keyed digest of every range that they read, so that the guard can later tell whether
 * the bytes that were parsed are the bytes that the digests vouch for (guard_vouch).
 */
#ifndef VERIFY_WITNESS_H
#define VERIFY_WITNESS_H

#include "catalog/catalog.h"
#include "hash/block.h"
#include "source/source.h"

struct witness;

/* Takes `under` over; closing witness_source closes it. Errors: NOMEM, IO (no random key). */
int witness_new(struct source *under, struct witness **ret_witness, struct ckpt_err *err);
/* The source to parse through. It stays valid after witness_seal and is closed by whoever holds it. */
struct source *witness_source(struct witness *witness);
/* Parsing is over: nothing is recorded from here on, reads pass straight through. */
void witness_seal(struct witness *witness);
/* Frees the records; call it after the source was closed. NULL is allowed. */
void witness_free(struct witness *witness);

/* One range that was read, and its digest. */
struct testimony {
    struct range at;
    uint64_t digest;
};
/* The n-th testimony (by offset) that touches `range`; false when there are fewer. */
bool witness_recall(
    const struct witness *witness, struct range range, uint64_t n, struct testimony *ret_testimony);
uint64_t witness_digest(const struct witness *witness, const void *bytes, size_t len);

#endif
