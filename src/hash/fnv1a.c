/* SPDX-License-Identifier: Apache-2.0 */
#include "hash/fnv1a.h"
#include "hash/hash_ops.h"

uint64_t fnv1a64(uint64_t h, const void *bytes, size_t len) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ at[i]) * FNV1A64_PRIME;
    return h;
}

static void fnv1a_reset(void *state) {
    *(uint64_t *)state = FNV1A64_START;
}

static int fnv1a_init(void *state, struct ckpt_err *err) {
    (void)err; /* the state is a number: nothing to fail */
    fnv1a_reset(state);
    return 0;
}

static void fnv1a_update(void *state, const void *bytes, size_t len) {
    uint64_t *h = state;
    *h = fnv1a64(*h, bytes, len);
}

static void fnv1a_final(void *state, uint8_t *digest) {
    uint64_t h = *(const uint64_t *)state;
    for (int i = 0; i < 8; i++)
        digest[i] = (uint8_t)(h >> (56 - 8 * i));
}

static void fnv1a_fini(void *state) {
    (void)state;
}

const struct hash_ops hash_ops_fnv1a64 = {
    .state_bytes = sizeof(uint64_t),
    .init = fnv1a_init,
    .reset = fnv1a_reset,
    .update = fnv1a_update,
    .final = fnv1a_final,
    .fini = fnv1a_fini,
};
