/* SPDX-License-Identifier: Apache-2.0 */
#include "hash/hash.h"
#include "hash/hash_ops.h"

#include <stdlib.h>
#include <string.h>

const struct hash_info hash_table[HASH_KIND_COUNT] = {
    [HASH_FNV1A64] = {.name = "fnv1a64", .digest_bytes = 8},
    [HASH_SHA256] = {.name = "sha256", .digest_bytes = 32},
};

static const struct hash_ops *const ops_table[HASH_KIND_COUNT] = {
    [HASH_FNV1A64] = &hash_ops_fnv1a64,
    [HASH_SHA256] = &hash_ops_sha256,
};

struct hash_state {
    const struct hash_ops *ops;
    _Alignas(max_align_t) unsigned char own[]; /* ops->state_bytes */
};

int hash_new(enum hash_kind kind, struct hash_state **ret_state, struct ckpt_err *err) {
    const struct hash_ops *ops = ops_table[kind];
    struct hash_state *state = calloc(1, sizeof *state + ops->state_bytes);
    if (!state)
        return err_set(err, CKPT_E_NOMEM, "no memory for a %s state", hash_table[kind].name);
    state->ops = ops;
    int rc = ops->init(state->own, err);
    if (rc) {
        free(state);
        return rc;
    }
    *ret_state = state;
    return 0;
}

void hash_reset(struct hash_state *state) {
    state->ops->reset(state->own);
}

void hash_update(struct hash_state *state, const void *bytes, size_t len) {
    state->ops->update(state->own, bytes, len);
}

void hash_final(struct hash_state *state, uint8_t digest[HASH_DIGEST_MAX]) {
    state->ops->final(state->own, digest);
}

void hash_free(struct hash_state *state) {
    if (!state)
        return;
    state->ops->fini(state->own);
    free(state);
}

int hash_check(const uint8_t digest[HASH_DIGEST_MAX], struct ckpt_err *err) {
    static const uint8_t none[HASH_DIGEST_MAX];
    return memcmp(digest, none, sizeof none) ? 0
                                             : err_set(err, CKPT_E_NOMEM, "no memory for a SHA-256 digest");
}

int hash_bytes(enum hash_kind kind, const void *bytes, size_t len, uint8_t digest[HASH_DIGEST_MAX],
    struct ckpt_err *err) {
    struct hash_state *state;
    int rc = hash_new(kind, &state, err);
    if (rc)
        return rc;
    hash_update(state, bytes, len);
    hash_final(state, digest);
    hash_free(state);
    return kind == HASH_SHA256 ? hash_check(digest, err) : 0;
}
