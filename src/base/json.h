/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict JSON (RFC 8259) read as a stream of events, in constant stack and memory: nesting is counted, never
 * recursed into, and numbers stay text, so 64-bit integers are exact. Also the few pieces that write JSON.
 *
 * Reading: json_next moves over one token at a time. Keys arrive as JSON_KEY events. json_skip moves over a
 * whole value; the bytes between two json_offset calls are the value's own text, which can be passed through.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"
#include "base/err.h"

enum json_event {
    JSON_ERROR, /* malformed: json->error says what, json_offset where; or json_no_memory */
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_END, /* the text's end: one value was read and nothing but blanks follows */
};

#define JSON_DEPTH_MAX 960 /* deeper is malformed; Python's reader stops near there, too */

struct json {
    const char *text;
    size_t len, at, token;
    uint64_t stack[JSON_DEPTH_MAX / 64]; /* bit d: the container at depth d is an object */
    unsigned depth, state;
    enum json_event last; /* what json_next returned last */
    const char *error;
    unsigned depth_max;   /* may be lowered after json_start */
    bool lone_surrogates; /* may be set after json_start: half of a pair is taken, and decoded as if it were a
                             character (so `value` may not be UTF-8) */
    bool undecoded;     /* may be set after json_start: strings with escapes are judged, but their `value` is
                           empty, and nothing needs memory */
    char nested[40];    /* where error points for a text that is nested too deeply */
    struct buf scratch; /* the decoded text of the last JSON_KEY or JSON_STRING that had escapes */
    const char *value; /* KEY, STRING: decoded UTF-8 (may hold NULs); NUMBER: its text. Not NUL-terminated. */
    size_t value_len;  /* `value` is valid until the next call */
};

/* Over len bytes that stay alive and unchanged. Invalid UTF-8 inside strings is malformed. */
void json_start(struct json *json, const char *text, size_t len);
void json_stop(struct json *json);
enum json_event json_next(struct json *json);
/* Whether a JSON_ERROR came of memory that ran out, which says nothing about the text: CKPT_E_NOMEM then,
 * else 0 and *err untouched. */
int json_no_memory(const struct json *json, struct ckpt_err *err);
/* Moves over the rest of the value that `event` (just returned) began, without needing memory. JSON_ERROR
 * when it is malformed, else `event`. */
enum json_event json_skip(struct json *json, enum json_event event);
/* Offset in the text of the first byte that was not consumed yet. */
size_t json_offset(const struct json *json);
/* Offset of the first byte of the token last returned. */
size_t json_token(const struct json *json);

/* The last event's number as a plain integer ("12", not "1e1", "12.0" or "-0"); false when it is not one,
 * does not fit, or the last event was no NUMBER. */
bool json_u64(const struct json *json, uint64_t *ret_value);
bool json_i64(const struct json *json, int64_t *ret_value);
bool json_is(const struct json *json, const char *text); /* the last KEY or STRING equals text */

/* Whether the text is one well-formed JSON document (no repeated keys are looked for). */
bool json_valid(const char *text, size_t len);
/* Whether Python's json.loads takes the document: it takes lone surrogates, and no integer of over 4,300
 * digits. */
bool json_python(const char *text, size_t len);

/* Writing. json_put_string writes quotes and the escapes of Python's json.dumps(ensure_ascii=False), which
 * safetensors headers have; UTF-8 stays as it is. */
void json_put_string(struct buf *buf, const char *text, size_t len);
/* The shortest %.Ng (N = 1..9) that reads back as the same float32; NaN and infinities as strings. */
void json_put_f32(struct buf *buf, float value);

#endif
