/* SPDX-License-Identifier: Apache-2.0 */
/* The keyed digest of a served block (XXH3, 64 bits, random key): nobody who cannot read the daemon's memory
 * can make other bytes with the same digest on purpose, and accidents pass with 2^-64. */
#ifndef HASH_BLOCK_H
#define HASH_BLOCK_H

#include "base/err.h"

#define BLOCK_KEY_BYTES 192

struct block_key {
    uint8_t secret[BLOCK_KEY_BYTES];
};

/* Fills the key from the system's random source. Errors: IO. */
int block_key_new(struct block_key *ret_key, struct ckpt_err *err);
uint64_t block_digest(const struct block_key *key, const void *bytes, size_t len);

#endif
