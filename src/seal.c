/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_seal and ckpt_unseal: contracts, pins and headers around the writers of envelopes. */
#include "pack/seal.h"

#include "base/ovf.h"
#include "format/envelope_header.h"
#include "format/format.h"
#include "format/mistake.h"
#include "hash/hash.h"
#include "pins.h"

#include <string.h>

#define HEAD_BYTES 4096

/* ---- sealing ------------------------------------------------------------------------------------------- */

static int plan_by_contract(const char *path, struct seal_plan *plan, struct ckpt_err *err) {
    struct contract contract;
    int rc = pins_load_contract(path, &contract, err);
    if (rc)
        return rc;
    memcpy(plan->identity_sha256, contract.identity_sha256, sizeof plan->identity_sha256);
    plan->chunk_bytes = contract.chunk_bytes;
    plan->payload_bytes = contract.payload_bytes;
    plan->sized = true;
    contract_free(&contract);
    return 0;
}

static int plan_by_identities(const struct ckpt_seal *how, struct seal_plan *plan, struct ckpt_err *err) {
    static const char *const names[] = {"schema", "learner", "data", "seed"};
    int rc = 0;
    for (int i = 0; !rc && i < 4; i++) {
        const char *text = how->identity[i];
        rc = text ? hash_bytes(HASH_SHA256, text, strlen(text), plan->identity_sha256[i], err)
                  : err_set(err, CKPT_E_INVAL, "the identity %s is missing", names[i]);
    }
    if (!rc && !how->chunk_bytes)
        rc = err_set(err, CKPT_E_INVAL, "chunks of 0 bytes");
    plan->chunk_bytes = how->chunk_bytes;
    return rc;
}

int ckpt_seal(int payload, const struct ckpt_seal *how, const char *to,
    const struct ckpt_write_options *options, struct ckpt_err *err) {
    struct seal_plan plan = {.updates = how->updates, .invocations = how->invocations};
    int rc =
        how->contract ? plan_by_contract(how->contract, &plan, err) : plan_by_identities(how, &plan, err);
    return rc ? rc : seal(payload, &plan, to, options, err);
}

/* ---- unsealing ----------------------------------------------------------------------------------------- */

/* Without a contract, what has no envelope at all is told apart from a damaged one. */
static int recognize(struct source *source, struct ckpt_err *err) {
    uint8_t head[HEAD_BYTES];
    size_t len = (size_t)ovf_min(sizeof head, source->size);
    int rc = source_read(source, 0, head, len, err);
    if (rc || format_envelope.probe(head, len, source->size))
        return rc;
    rc = mistake_check(head, len, err);
    const struct format *format = rc ? NULL : format_find(head, len, source->size, NULL);
    if (rc)
        return rc;
    return err_set(err, CKPT_E_FORMAT, "no envelope%s%s", format ? ", but " : "", format ? format->name : "");
}

static int read_header(struct source *source, const struct contract *contract, const char *manifest,
    struct arena *arena, struct envelope **ret_envelope, struct ckpt_err *err) {
    int rc = contract ? envelope_judge(source, contract, err) : recognize(source, err);
    if (!rc)
        rc = envelope_header_read(source, arena, ret_envelope, err);
    return rc ? rc : pins_judge_header(*ret_envelope, contract, manifest, true, err);
}

static int unseal_source(struct source *source, const struct ckpt_pins *pins, const char *to,
    const struct ckpt_write_options *options, struct ckpt_err *err) {
    struct contract contract = {0};
    struct arena arena = {0};
    struct envelope *envelope;
    int rc = pins->contract ? pins_load_contract(pins->contract, &contract, err) : 0;
    if (!rc)
        rc = read_header(source, pins->contract ? &contract : NULL, pins->manifest, &arena, &envelope, err);
    if (!rc)
        rc = unseal(source, envelope, to, options, err);
    arena_free(&arena);
    contract_free(&contract);
    return rc;
}

int ckpt_unseal(const char *from, const struct ckpt_pins *pins, const char *to,
    const struct ckpt_write_options *options, struct ckpt_err *err) {
    static const struct ckpt_pins none = {0};
    struct source *source;
    pins = pins ? pins : &none;
    int rc = pins_check_manifest(pins->manifest, err);
    if (!rc)
        rc = source_open_file(from, &source, err);
    if (rc)
        return rc;
    rc = unseal_source(source, pins, to, options, err);
    source_close(source);
    return rc;
}
