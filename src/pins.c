/* SPDX-License-Identifier: Apache-2.0 */
#include "pins.h"

#include "base/buf.h"
#include "base/ovf.h"
#include "base/text.h"
#include "hash/hash.h"

#include <string.h>

#define CONTRACT_BYTES_MAX ((uint64_t)1 << 20)
#define PIN_PREFIX "sha256:"

/* ---- contracts --------------------------------------------------------------------------------------- */

static int read_whole(const char *path, uint64_t max, struct buf *text, struct ckpt_err *err) {
    struct source *source;
    int rc = source_open_file(path, &source, err);
    if (rc)
        return rc;
    char piece[4096];
    uint64_t size = source->size;
    if (size > max)
        rc = err_set(err, CKPT_E_LIMIT, "%s: %llu bytes, a contract has at most %llu", path,
            (unsigned long long)size, (unsigned long long)max);
    for (uint64_t at = 0; !rc && at < size; at += sizeof piece) {
        size_t len = (size_t)ovf_min(sizeof piece, size - at);
        rc = source_read(source, at, piece, len, err);
        if (!rc)
            buf_put(text, piece, len);
    }
    if (!rc && !buf_cstr(text))
        rc = err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    source_close(source);
    return rc;
}

int pins_load_contract(const char *path, struct contract *ret_contract, struct ckpt_err *err) {
    struct contract contract = {0};
    struct buf text = {0};
    int rc = read_whole(path, CONTRACT_BYTES_MAX, &text, err);
    if (!rc)
        rc = contract_parse(text.bytes, text.len, &contract, err);
    for (int i = 0; !rc && i < 4; i++)
        rc = hash_bytes(
            HASH_SHA256, contract.identity[i], contract.identity_len[i], contract.identity_sha256[i], err);
    buf_free(&text);
    bool none = rc == CKPT_E_FORMAT || rc == CKPT_E_LIMIT; /* the user's mistake, not the checkpoint's */
    if (err && none)
        rc = err->code = CKPT_E_INVAL;
    if (rc) {
        contract_free(&contract);
        return err_wrap(err, rc, "contract %s", path);
    }
    *ret_contract = contract;
    return 0;
}

/* ---- headers ----------------------------------------------------------------------------------------- */

int pins_check_manifest(const char *manifest, struct ckpt_err *err) {
    uint8_t digest[32];
    if (manifest && (strncmp(manifest, PIN_PREFIX, strlen(PIN_PREFIX)) != 0 ||
                        !text_unhex(manifest + strlen(PIN_PREFIX), 32, digest)))
        return err_set(
            err, CKPT_E_INVAL, "manifest '%s': sha256: and 64 hexadecimal digits are wanted", manifest);
    return 0;
}

static int judge_manifest(const struct envelope *envelope, const char *manifest, struct ckpt_err *err) {
    const char *pinned = manifest + strlen(PIN_PREFIX);
    uint8_t wanted[32];
    char found[65];
    if (text_unhex(pinned, 32, wanted) && !memcmp(wanted, envelope->manifest, 32))
        return 0;
    text_hex(envelope->manifest, 32, found);
    return err_verdict(err, CKPT_E_MISMATCH, "manifest-mismatch",
        "the header hashes to sha256:%s, pinned is sha256:%s", found, pinned);
}

int pins_judge_header(struct envelope *envelope, const struct contract *contract, const char *manifest,
    bool thorough, struct ckpt_err *err) {
    int rc = hash_bytes(HASH_SHA256, envelope->header, envelope->header_bytes, envelope->manifest, err);
    if (!rc && contract)
        rc = envelope_judge_header(envelope->header, contract, err);
    if (!rc && manifest)
        rc = judge_manifest(envelope, manifest, err);
    if (!rc && thorough && !contract && envelope->stray)
        rc = err_verdict(err, CKPT_E_MISMATCH, "layout",
            "nonzero byte at offset %llu, between the last digest and the end of the header",
            (unsigned long long)envelope->stray);
    return rc;
}
