/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller holds an envelope against: a contract, and the digest of its header. */
#ifndef PINS_H
#define PINS_H

#include "format/envelope.h"

/* Reads the contract at `path` and takes its identities' digests. Errors: IO, INVAL, NOMEM. */
int pins_load_contract(const char *path, struct contract *ret_contract, struct ckpt_err *err);

/* Whether `manifest` (NULL: none is pinned) is "sha256:HEX". Errors: INVAL. */
int pins_check_manifest(const char *manifest, struct ckpt_err *err);

/*
 * Takes the manifest of a header that was parsed, and judges it: against the contract (NULL: none; one whose
 * file's size was judged before), the pinned manifest (NULL: none), and, when thorough, what only a contract
 * overlooks. Errors: MISMATCH.
 */
int pins_judge_header(struct envelope *envelope, const struct contract *contract, const char *manifest,
    bool thorough, struct ckpt_err *err);

#endif
