/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 by OpenSSL, whose only user this file is. */
#include "hash/hash_ops.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

/* reset, update and final cannot report. Where they fail (no memory, a foreign provider), the digest is all
 * zeros, which no content is known to have: verification fails closed, and a writer can tell. A state that
 * was not begun is not touched again. */
struct sha256 {
    EVP_MD *md; /* fetched once: a lookup by name takes locks */
    EVP_MD_CTX *ctx;
    bool failed;
};

static void sha256_reset(void *state) {
    struct sha256 *sha = state;
    sha->failed = EVP_DigestInit_ex2(sha->ctx, sha->md, NULL) != 1;
}

static void sha256_fini(void *state) {
    struct sha256 *sha = state;
    EVP_MD_CTX_free(sha->ctx);
    EVP_MD_free(sha->md);
}

/* That there is none is taken from the library's own word: any other reason is memory. Without memory for its
 * own start the library would crash on a fetch. */
static int fetch(EVP_MD **ret_md, struct ckpt_err *err) {
    OSSL_LIB_CTX *library = OSSL_LIB_CTX_get0_global_default();
    if (!library)
        return err_set(err, CKPT_E_NOMEM, "no memory for the crypto library");
    ERR_set_mark();
    EVP_MD *md = EVP_MD_fetch(library, "SHA256", NULL);
    bool absent = !md && ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_UNSUPPORTED;
    ERR_pop_to_mark();
    if (absent)
        return err_set(err, CKPT_E_UNSUPPORTED, "the crypto library has no SHA-256");
    if (!md)
        return err_set(err, CKPT_E_NOMEM, "no memory for a SHA-256");
    *ret_md = md;
    return 0;
}

static int sha256_init(void *state, struct ckpt_err *err) {
    struct sha256 *sha = state;
    int rc = fetch(&sha->md, err);
    if (rc)
        return rc;
    sha->ctx = EVP_MD_CTX_new();
    if (sha->ctx)
        sha256_reset(sha);
    if (!sha->ctx || sha->failed) {
        sha256_fini(sha);
        return err_set(err, CKPT_E_NOMEM, "no memory for a SHA-256 state");
    }
    return 0;
}

static void sha256_update(void *state, const void *bytes, size_t len) {
    struct sha256 *sha = state;
    sha->failed = sha->failed || EVP_DigestUpdate(sha->ctx, bytes, len) != 1;
}

static void sha256_final(void *state, uint8_t *digest) {
    struct sha256 *sha = state;
    sha->failed = sha->failed || EVP_DigestFinal_ex(sha->ctx, digest, NULL) != 1;
    if (sha->failed)
        memset(digest, 0, 32);
}

const struct hash_ops hash_ops_sha256 = {
    .state_bytes = sizeof(struct sha256),
    .init = sha256_init,
    .reset = sha256_reset,
    .update = sha256_update,
    .final = sha256_final,
    .fini = sha256_fini,
};
