/* SPDX-License-Identifier: Apache-2.0 */
#include "format/envelope.h"

#include "base/json.h"
#include "base/ovf.h"
#include "base/text.h"
#include "format/envelope_header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const identity_names[ENVELOPE_IDENTITIES] = {"schema", "learner", "data", "seed"};

/* ---- reading one ------------------------------------------------------------------------------------ */

enum { PAYLOAD = ENVELOPE_IDENTITIES, CHUNK, PER_INVOCATION, MEMBERS };
static const char *const number_names[] = {"payload_bytes", "chunk_bytes", "updates_per_invocation"};

static const char *member_name(int member) {
    return member < ENVELOPE_IDENTITIES ? identity_names[member] : number_names[member - ENVELOPE_IDENTITIES];
}

/* The member that the last KEY names; -1: none of the contract's. */
static int member_of(const struct json *json) {
    for (int member = 0; member < MEMBERS; member++)
        if (json_is(json, member_name(member)))
            return member;
    return -1;
}

static int malformed(const struct json *json, struct ckpt_err *err) {
    int rc = json_no_memory(json, err);
    if (rc)
        return rc;
    return err_set(err, CKPT_E_INVAL, "malformed JSON at byte %zu: %s", json_offset(json), json->error);
}

static int take_identity(
    struct contract *contract, int member, const struct json *json, struct ckpt_err *err) {
    char *copy = malloc(json->value_len + 1);
    if (!copy)
        return err_set(err, CKPT_E_NOMEM, "no memory for a contract");
    if (json->value_len)
        memcpy(copy, json->value, json->value_len);
    copy[json->value_len] = '\0';
    contract->identity[member] = copy;
    contract->identity_len[member] = json->value_len;
    return 0;
}

static int take_number(struct contract *contract, int member, const struct json *json, struct ckpt_err *err) {
    uint64_t *const targets[] = {
        &contract->payload_bytes, &contract->chunk_bytes, &contract->updates_per_invocation};
    if (json_u64(json, targets[member - ENVELOPE_IDENTITIES]))
        return 0;
    return err_set(err, CKPT_E_INVAL, "%s is %.*s, a whole number from 0 to 2^64 - 1 is wanted",
        member_name(member), json->value_len < 64 ? (int)json->value_len : 64, json->value);
}

static int take_value(struct contract *contract, int member, struct json *json, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    bool text = member < ENVELOPE_IDENTITIES;
    if (event == JSON_ERROR)
        return malformed(json, err);
    if (event != (text ? JSON_STRING : JSON_NUMBER))
        return err_set(err, CKPT_E_INVAL, "%s is no %s", member_name(member), text ? "text" : "number");
    return text ? take_identity(contract, member, json, err) : take_number(contract, member, json, err);
}

/* After a KEY; seen has a bit for each member so far. */
static int take_member(struct contract *contract, struct json *json, unsigned *seen, struct ckpt_err *err) {
    int member = member_of(json);
    if (member < 0)
        return json_skip(json, json_next(json)) == JSON_ERROR ? malformed(json, err) : 0;
    if (*seen >> member & 1)
        return err_set(err, CKPT_E_INVAL, "%s is there twice", member_name(member));
    *seen |= 1u << member;
    return take_value(contract, member, json, err);
}

static int take_members(struct contract *contract, struct json *json, unsigned *seen, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event != JSON_OBJECT && event != JSON_ERROR)
        return err_set(err, CKPT_E_INVAL, "a contract is a JSON object");
    while (event != JSON_ERROR && (event = json_next(json)) == JSON_KEY) {
        int rc = take_member(contract, json, seen, err);
        if (rc)
            return rc;
    }
    if (event == JSON_ERROR || json_next(json) == JSON_ERROR)
        return malformed(json, err);
    return 0;
}

static int check_whole(const struct contract *contract, unsigned seen, struct ckpt_err *err) {
    for (int member = 0; member < MEMBERS; member++)
        if (!(seen >> member & 1))
            return err_set(err, CKPT_E_INVAL, "%s is missing", member_name(member));
    if (!contract->chunk_bytes && contract->payload_bytes)
        return err_set(
            err, CKPT_E_INVAL, "chunk_bytes is 0, but payload_bytes is %" PRIu64, contract->payload_bytes);
    return 0;
}

int contract_parse(const char *text, size_t len, struct contract *ret_contract, struct ckpt_err *err) {
    struct contract contract = {0};
    struct json json;
    unsigned seen = 0;
    json_start(&json, text, len);
    int rc = take_members(&contract, &json, &seen, err);
    json_stop(&json);
    if (!rc)
        rc = check_whole(&contract, seen, err);
    if (rc)
        contract_free(&contract);
    else
        *ret_contract = contract;
    return rc;
}

void contract_free(struct contract *contract) {
    for (int i = 0; i < ENVELOPE_IDENTITIES; i++)
        free(contract->identity[i]);
    *contract = (struct contract){0};
}

/* ---- holding a file against it ---------------------------------------------------------------------- */

static int judge_layout(const uint8_t *start, const struct envelope_layout *layout, struct ckpt_err *err) {
    uint8_t wanted[ENVELOPE_LAYOUT_BYTES];
    envelope_layout_put(layout, wanted);
    for (int i = 0; i < ENVELOPE_LAYOUT_BYTES; i++)
        if (start[i] != wanted[i])
            return err_verdict(err, CKPT_E_MISMATCH, "layout", "byte %d is 0x%02x, the contract gives 0x%02x",
                i, start[i], wanted[i]);
    return 0;
}

static int judge_identities(const uint8_t *start, const struct contract *contract, struct ckpt_err *err) {
    static const char *const words[ENVELOPE_IDENTITIES] = {
        "foreign-schema", "foreign-learner", "foreign-data", "foreign-seed"};
    for (int i = 0; i < ENVELOPE_IDENTITIES; i++) {
        const uint8_t *found = start + ENVELOPE_IDENTITY_OFFSET + ENVELOPE_DIGEST_BYTES * i;
        char hex[2][2 * ENVELOPE_DIGEST_BYTES + 1];
        if (!memcmp(found, contract->identity_sha256[i], ENVELOPE_DIGEST_BYTES))
            continue;
        text_hex(found, ENVELOPE_DIGEST_BYTES, hex[0]);
        text_hex(contract->identity_sha256[i], ENVELOPE_DIGEST_BYTES, hex[1]);
        return err_verdict(
            err, CKPT_E_MISMATCH, words[i], "sha256:%s, the contract gives %s", hex[0], hex[1]);
    }
    return 0;
}

int envelope_judge(struct source *source, const struct contract *contract, struct ckpt_err *err) {
    struct envelope_layout layout;
    uint64_t size;
    if (!envelope_layout_of(contract->payload_bytes, contract->chunk_bytes, &layout) ||
        !ovf_add(layout.header_bytes, layout.payload_bytes, &size))
        return err_verdict(err, CKPT_E_MISMATCH, "truncated",
            "%" PRIu64 " bytes, the contract gives more than 2^64", source->size);
    if (source->size != size)
        return err_verdict(err, CKPT_E_MISMATCH, "truncated",
            "%" PRIu64 " bytes, the contract gives %" PRIu64, source->size, size);
    uint8_t start[ENVELOPE_DIGESTS_OFFSET];
    int rc = source_read(source, 0, start, sizeof start, err);
    return rc ? rc : envelope_judge_header(start, contract, err);
}

int envelope_judge_header(const uint8_t *header, const struct contract *contract, struct ckpt_err *err) {
    struct envelope_layout layout;
    if (!envelope_layout_of(contract->payload_bytes, contract->chunk_bytes, &layout))
        return err_verdict(err, CKPT_E_MISMATCH, "truncated", "the contract gives more than 2^64 bytes");
    int rc = judge_layout(header, &layout, err);
    return rc ? rc : judge_identities(header, contract, err);
}
