/* SPDX-License-Identifier: Apache-2.0 */
/* Envelope contracts, and the verdict before the chunks. */
#ifndef FORMAT_ENVELOPE_H
#define FORMAT_ENVELOPE_H

#include "catalog/catalog.h"
#include "source/source.h"

/* The four identities as they are stored: SHA-256 of the contract's texts, taken by the caller. */
struct contract {
    char *identity[4]; /* schema, learner, data, seed: UTF-8, owned, identity_len bytes */
    size_t identity_len[4];
    uint8_t identity_sha256[4][32];
    uint64_t payload_bytes, chunk_bytes, updates_per_invocation;
};

/* Reads a contract document. Errors: INVAL (says which member is missing or malformed), NOMEM. */
int contract_parse(const char *text, size_t len, struct contract *ret_contract, struct ckpt_err *err);
void contract_free(struct contract *contract);

/*
 * Steps 1 to 6 of the verdict against a contract whose identity_sha256 is filled in. MISMATCH with the
 * words "truncated", "layout", "foreign-schema", ...; 0 when they hold.
 */
int envelope_judge(struct source *source, const struct contract *contract, struct ckpt_err *err);
/* Steps 2 to 6 against a header at hand (its first 200 bytes), so that what is used later is what was judged.
 */
int envelope_judge_header(const uint8_t *header, const struct contract *contract, struct ckpt_err *err);

#endif
