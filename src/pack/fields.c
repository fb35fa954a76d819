/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/fields.h"

#include "base/quote.h"
#include "base/text.h"
#include "pack/float_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What was read so far; bit i is row i of the table. */
struct state {
    const struct fields *fields;
    struct json *json;
    uint32_t seen, seen_bits;
    uint32_t bits[FIELDS_MAX];
};

int json_wanted(const struct json *json, enum json_event event, const char *what, struct ckpt_err *err) {
    int rc = event == JSON_ERROR ? json_no_memory(json, err) : 0;
    if (rc)
        return rc;
    if (event == JSON_ERROR)
        return err_set(
            err, CKPT_E_INVAL, "not well-formed JSON: offset %zu: %s", json_offset(json), json->error);
    return err_set(err, CKPT_E_INVAL, "offset %zu: %s is wanted there", json_token(json), what);
}

/* ---- values ---------------------------------------------------------------------------------------------
 */

static int wrong(const struct json *json, enum json_event event, const char *what, struct ckpt_err *err) {
    struct quoted quoted;
    if (event != JSON_NUMBER && event != JSON_STRING)
        return json_wanted(json, event, what, err);
    return err_set(err, CKPT_E_INVAL, "%s is not %s", quote(&quoted, json->value, json->value_len), what);
}

static int read_unsigned(struct json *json, uint64_t max, uint64_t *ret_value, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    char what[48];
    if (event == JSON_NUMBER && json_u64(json, ret_value) && *ret_value <= max)
        return 0;
    snprintf(what, sizeof what, "an integer from 0 to %" PRIu64, max);
    return wrong(json, event, what, err);
}

static int read_u8(struct json *json, void *at, struct ckpt_err *err) {
    uint64_t value;
    int rc = read_unsigned(json, UINT8_MAX, &value, err);
    if (!rc)
        *(uint8_t *)at = (uint8_t)value;
    return rc;
}

static int read_u32(struct json *json, void *at, struct ckpt_err *err) {
    uint64_t value;
    int rc = read_unsigned(json, UINT32_MAX, &value, err);
    if (!rc)
        *(uint32_t *)at = (uint32_t)value;
    return rc;
}

static int read_i64(struct json *json, void *at, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event == JSON_NUMBER && json_i64(json, at))
        return 0;
    return wrong(json, event, "an integer of 64 bits with a sign", err);
}

static int read_bool(struct json *json, void *at, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event != JSON_TRUE && event != JSON_FALSE)
        return wrong(json, event, "true or false", err);
    *(bool *)at = event == JSON_TRUE;
    return 0;
}

static int read_text(struct json *json, struct arena *arena, void *at, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event != JSON_STRING)
        return wrong(json, event, "a string", err);
    char *copy = arena_text(arena, json->value, json->value_len);
    if (!copy)
        return err_set(err, CKPT_E_NOMEM, "no memory for a text of %zu bytes", json->value_len);
    *(struct model_text *)at = (struct model_text){copy, json->value_len};
    return 0;
}

static int read_dtype(struct json *json, void *at, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    int dtype = event == JSON_STRING ? dtype_find(json->value, json->value_len) : -1;
    if (dtype < 0)
        return wrong(json, event, "a scalar type (\"F32\", \"BF16\", ...)", err);
    *(uint8_t *)at = (uint8_t)dtype;
    return 0;
}

static int read_encoding(struct json *json, void *at, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    for (int i = 0; event == JSON_STRING && i < ENCODING_COUNT; i++)
        if (json_is(json, encoding_names[i])) {
            *(uint8_t *)at = (uint8_t)i;
            return 0;
        }
    return wrong(json, event, "an encoding (\"dense\", \"q4\" or \"q8\")", err);
}

static int read_f32(struct json *json, uint32_t *ret_bits, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    int rc = CKPT_E_INVAL;
    if (event == JSON_NUMBER)
        rc = float_of_number(json->value, json->value_len, ret_bits);
    else if (event == JSON_STRING && float_of_name(json->value, json->value_len, ret_bits))
        rc = 0;
    if (rc == CKPT_E_NOMEM)
        return err_set(err, rc, "no memory for a number of %zu digits", json->value_len);
    return rc ? wrong(json, event, "a float32 (a number, or \"NaN\", \"Infinity\", \"-Infinity\")", err) : 0;
}

static int read_bits(struct json *json, uint32_t *ret_bits, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    char digits[9];
    uint8_t bytes[4];
    if (event == JSON_STRING && json->value_len == 8 && !memchr(json->value, 0, 8)) {
        memcpy(digits, json->value, 8);
        digits[8] = '\0';
        if (text_unhex(digits, 4, bytes)) {
            *ret_bits =
                (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
            return 0;
        }
    }
    return wrong(json, event, "the eight hexadecimal digits of a float32", err);
}

/* ---- members --------------------------------------------------------------------------------------------
 */

static int read_value(struct state *state, size_t row, struct ckpt_err *err) {
    const struct fields *fields = state->fields;
    const struct field *field = &fields->table[row];
    struct json *json = state->json;
    void *at = (char *)fields->into + field->offset;
    enum json_event event;
    switch (field->kind) {
    case FIELD_U8:
        return read_u8(json, at, err);
    case FIELD_U32:
        return read_u32(json, at, err);
    case FIELD_U64:
        return read_unsigned(json, UINT64_MAX, at, err);
    case FIELD_I64:
        return read_i64(json, at, err);
    case FIELD_BOOL:
        return read_bool(json, at, err);
    case FIELD_TEXT:
        return read_text(json, fields->arena, at, err);
    case FIELD_DTYPE:
        return read_dtype(json, at, err);
    case FIELD_ENCODING:
        return read_encoding(json, at, err);
    case FIELD_F32:
        return read_f32(json, at, err);
    case FIELD_CUSTOM:
        return fields->custom(fields->arg, field, json, err);
    case FIELD_SKIP:
        break;
    }
    event = json_skip(json, json_next(json));
    return event == JSON_ERROR ? json_wanted(json, event, "", err) : 0;
}

/* Whether the key is the name of the row, or (bits) that name with "_bits" after it. */
static bool names(const struct json *json, const struct field *field, bool bits) {
    static const char suffix[] = "_bits";
    size_t len = strlen(field->name), tail = bits ? sizeof suffix - 1 : 0;
    return (!bits || field->kind == FIELD_F32) && json->value_len == len + tail &&
           !memcmp(json->value, field->name, len) && !memcmp(json->value + len, suffix, tail);
}

static int read_member(struct state *state, struct ckpt_err *err) {
    const struct fields *fields = state->fields;
    struct json *json = state->json;
    for (size_t row = 0; row < fields->count; row++)
        for (int bits = 0; bits < 2; bits++) {
            const struct field *field = &fields->table[row];
            uint32_t *seen = bits ? &state->seen_bits : &state->seen, bit = UINT32_C(1) << row;
            if (!names(json, field, bits))
                continue;
            int rc = *seen & bit ? err_set(err, CKPT_E_INVAL, "it is there twice")
                     : bits      ? read_bits(json, &state->bits[row], err)
                                 : read_value(state, row, err);
            *seen |= bit;
            return rc ? err_wrap(err, rc, "%s%s", field->name, bits ? "_bits" : "") : 0;
        }
    struct quoted key;
    if (!fields->open)
        return err_set(err, CKPT_E_INVAL, "unknown member %s", quote(&key, json->value, json->value_len));
    enum json_event event = json_skip(json, json_next(json));
    return event == JSON_ERROR ? json_wanted(json, event, "", err) : 0;
}

/* The bits stand for the value, which must not be another one. */
static int settle(struct state *state, size_t row, struct ckpt_err *err) {
    const struct field *field = &state->fields->table[row];
    const uint32_t bit = UINT32_C(1) << row, bits = state->bits[row];
    if (!(state->seen & bit) && !(state->seen_bits & bit))
        return field->optional ? 0 : err_set(err, CKPT_E_INVAL, "the member '%s' is missing", field->name);
    if (!(state->seen_bits & bit))
        return 0;
    uint32_t *at = (uint32_t *)(void *)((char *)state->fields->into + field->offset);
    if (state->seen & bit && *at != bits && !(float_is_nan(*at) && float_is_nan(bits)))
        return err_set(err, CKPT_E_INVAL, "%s has the bits %08" PRIx32 ", %s_bits says %08" PRIx32,
            field->name, *at, field->name, bits);
    *at = bits;
    return 0;
}

int fields_members(const struct fields *fields, struct json *json, struct ckpt_err *err) {
    struct state state = {.fields = fields, .json = json};
    enum json_event event = JSON_ERROR;
    int rc = 0;
    while (!rc && (event = json_next(json)) == JSON_KEY)
        rc = read_member(&state, err);
    if (!rc && event != JSON_OBJECT_END)
        rc = json_wanted(json, event, "a member", err);
    for (size_t row = 0; !rc && row < fields->count; row++)
        rc = settle(&state, row, err);
    return rc;
}

int fields_read(const struct fields *fields, struct json *json, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    return event == JSON_OBJECT ? fields_members(fields, json, err)
                                : json_wanted(json, event, "an object", err);
}

int fields_parse(const struct fields *fields, const char *text, size_t len, struct ckpt_err *err) {
    struct json json;
    json_start(&json, text, len);
    int rc = fields_read(fields, &json, err);
    if (!rc) {
        enum json_event event = json_next(&json);
        if (event != JSON_END)
            rc = json_wanted(&json, event, "the end", err);
    }
    json_stop(&json);
    return rc;
}
