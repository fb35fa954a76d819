/* SPDX-License-Identifier: Apache-2.0 */
/* What a digest algorithm is to hash.c: one row of its table, implemented by one file. */
#ifndef HASH_HASH_OPS_H
#define HASH_HASH_OPS_H

#include "base/err.h"

/* `state` is state_bytes of zeroed memory, aligned for any type, that hash.c owns. */
struct hash_ops {
    size_t state_bytes;
    int (*init)(void *state, struct ckpt_err *err); /* after a failure there is nothing to fini */
    void (*reset)(void *state);                     /* back to what init left */
    void (*update)(void *state, const void *bytes, size_t len);
    void (*final)(void *state, uint8_t *digest);
    void (*fini)(void *state);
};

extern const struct hash_ops hash_ops_fnv1a64;
extern const struct hash_ops hash_ops_sha256;

#endif
