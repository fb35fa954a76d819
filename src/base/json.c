/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/ovf.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* What may come next; FAILED is for good. */
enum state {
    WANT_VALUE,
    WANT_VALUE_OR_END, /* right after '[' */
    WANT_KEY,
    WANT_KEY_OR_END, /* right after '{' */
    WANT_COLON,
    WANT_MORE, /* a comma or the container's end */
    WANT_END,
    FAILED,
};

void json_start(struct json *json, const char *text, size_t len) {
    *json = (struct json){.text = text, .len = len, .state = WANT_VALUE, .depth_max = JSON_DEPTH_MAX};
}

void json_stop(struct json *json) {
    buf_free(&json->scratch);
}

static enum json_event fail(struct json *json, const char *error) {
    json->state = FAILED;
    json->error = error;
    return JSON_ERROR;
}

/* The next byte, or -1 at the end. */
static int peek(const struct json *json) {
    return json->at < json->len ? (unsigned char)json->text[json->at] : -1;
}

static bool take(struct json *json, char c) {
    if (peek(json) != c)
        return false;
    json->at++;
    return true;
}

static void skip_blanks(struct json *json) {
    for (int c = peek(json); c == ' ' || c == '\n' || c == '\r' || c == '\t'; c = peek(json))
        json->at++;
}

/* ---- containers ------------------------------------------------------------------------------------- */

static bool in_object(const struct json *json) {
    unsigned level = json->depth - 1;
    return json->stack[level / 64] >> level % 64 & 1;
}

static enum json_event open_container(struct json *json, bool object) {
    if (json->depth == json->depth_max) {
        snprintf(json->nested, sizeof json->nested, "nested deeper than %u", json->depth_max);
        return fail(json, json->nested);
    }
    uint64_t bit = (uint64_t)1 << json->depth % 64, *word = &json->stack[json->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    json->depth++;
    json->state = object ? WANT_KEY_OR_END : WANT_VALUE_OR_END;
    json->at++;
    return object ? JSON_OBJECT : JSON_ARRAY;
}

static enum json_event value_read(struct json *json, enum json_event event) {
    json->state = json->depth ? WANT_MORE : WANT_END;
    return event;
}

static enum json_event close_container(struct json *json) {
    enum json_event event = in_object(json) ? JSON_OBJECT_END : JSON_ARRAY_END;
    json->at++;
    json->depth--;
    return value_read(json, event);
}

int json_no_memory(const struct json *json, struct ckpt_err *err) {
    if (!json->scratch.failed)
        return 0;
    return err_set(err, CKPT_E_NOMEM, "no memory for the JSON string at offset %zu", json->token);
}

/* ---- strings ---------------------------------------------------------------------------------------- */

/* Four hex digits; -1 when there are fewer. */
static long hex4(struct json *json) {
    char digits[5] = {0};
    uint8_t pair[2];
    if (json->len - json->at < 4)
        return -1;
    memcpy(digits, json->text + json->at, 4);
    if (!text_unhex(digits, 2, pair))
        return -1;
    json->at += 4;
    return pair[0] << 8 | pair[1];
}

static bool is_high_surrogate(long unit) {
    return unit >= 0xD800 && unit < 0xDC00;
}

static bool is_low_surrogate(long unit) {
    return unit >= 0xDC00 && unit < 0xE000;
}

/* What follows "\u": a code point, of two escapes where they are a surrogate pair; -1 when malformed. */
static long code_point(struct json *json) {
    long unit = hex4(json), alone = json->lone_surrogates ? unit : -1;
    if (!is_high_surrogate(unit))
        return is_low_surrogate(unit) ? alone : unit;
    size_t after = json->at;
    long low = take(json, '\\') && take(json, 'u') ? hex4(json) : -1;
    if (is_low_surrogate(low))
        return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    json->at = after;
    return alone;
}

static void put_byte(struct json *json, int byte) {
    if (!json->undecoded)
        buf_putc(&json->scratch, (char)byte);
}

static void put_utf8(struct json *json, long c) {
    unsigned extra = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = {0, 0xC0, 0xE0, 0xF0};
    put_byte(json, (int)(leads[extra] | c >> (6 * extra)));
    while (extra--)
        put_byte(json, (int)(0x80 | (c >> (6 * extra) & 0x3F)));
}

/* The escape whose backslash was just consumed. */
static bool unescape(struct json *json) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (take(json, 'u')) {
        long c = code_point(json);
        if (c >= 0)
            put_utf8(json, c);
        return c >= 0;
    }
    int c = peek(json);
    const char *name = c > 0 ? strchr(names, c) : NULL;
    if (!name)
        return false;
    json->at++;
    put_byte(json, values[name - names]);
    return true;
}

/* Moves to the first byte from here that is a quote, a backslash or a control byte. Returns whether all
 * before it is UTF-8; a sequence that an escape cuts in two is not, so each run is judged by itself. */
static bool plain_run(struct json *json) {
    const unsigned char *start = (const unsigned char *)json->text + json->at, *at = start;
    const unsigned char *end = (const unsigned char *)json->text + json->len;
    unsigned seen = 0;
    for (; at < end && *at >= 0x20 && *at != '"' && *at != '\\'; at++)
        seen |= *at;
    json->at += (size_t)(at - start);
    return seen < 0x80 || text_is_utf8(start, (size_t)(at - start));
}

/* A string whose first quote is next: *value points into the text, or at scratch when there are escapes. */
static enum json_event read_string(struct json *json, enum json_event event) {
    size_t start = ++json->at;
    bool copied = false;
    for (;; start = json->at, copied = true) {
        if (!plain_run(json))
            return fail(json, "a string is not UTF-8");
        if (copied || peek(json) == '\\') {
            if (!copied)
                buf_clear(&json->scratch);
            if (!json->undecoded)
                buf_put(&json->scratch, json->text + start, json->at - start);
        }
        if (!take(json, '\\'))
            break;
        if (!unescape(json))
            return fail(json, "malformed escape in a string");
    }
    bool decoded = copied && !json->undecoded;
    json->value = decoded ? json->scratch.bytes : copied ? "" : json->text + start;
    json->value_len = decoded ? json->scratch.len : copied ? 0 : json->at - start;
    if (!take(json, '"'))
        return fail(json, json->at == json->len ? "a string without an end" : "control byte in a string");
    return json->scratch.failed ? fail(json, "no memory") : event;
}

/* ---- numbers and words ------------------------------------------------------------------------------ */

static bool take_digits(struct json *json) {
    size_t start = json->at;
    for (int c = peek(json); c >= '0' && c <= '9'; c = peek(json))
        json->at++;
    return json->at > start;
}

static bool take_number(struct json *json) {
    (void)take(json, '-');
    if (!take(json, '0') && !take_digits(json))
        return false;
    if (take(json, '.') && !take_digits(json))
        return false;
    if (!take(json, 'e') && !take(json, 'E'))
        return true;
    (void)(take(json, '+') || take(json, '-'));
    return take_digits(json);
}

static enum json_event read_number(struct json *json) {
    size_t start = json->at;
    if (!take_number(json))
        return fail(json, "malformed number");
    json->value = json->text + start;
    json->value_len = json->at - start;
    return value_read(json, JSON_NUMBER);
}

static enum json_event read_word(struct json *json, const char *word, enum json_event event) {
    size_t len = strlen(word);
    if (json->len - json->at < len || memcmp(json->text + json->at, word, len))
        return fail(json, "unknown word");
    json->at += len;
    return value_read(json, event);
}

/* ---- the reader ------------------------------------------------------------------------------------- */

static enum json_event read_value(struct json *json) {
    switch (peek(json)) {
    case '{':
        return open_container(json, true);
    case '[':
        return open_container(json, false);
    case '"':
        (void)value_read(json, JSON_STRING);
        return read_string(json, JSON_STRING);
    case 't':
        return read_word(json, "true", JSON_TRUE);
    case 'f':
        return read_word(json, "false", JSON_FALSE);
    case 'n':
        return read_word(json, "null", JSON_NULL);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return read_number(json);
    default:
        return fail(json, json->at == json->len ? "the text ends too early" : "a value was expected");
    }
}

static enum json_event read_key(struct json *json) {
    if (peek(json) != '"')
        return fail(json, "a key was expected");
    json->state = WANT_COLON;
    return read_string(json, JSON_KEY);
}

/* Moves over a comma or colon and the blanks after it. */
static void skip_mark(struct json *json) {
    json->at++;
    skip_blanks(json);
    json->token = json->at;
}

static enum json_event read_more(struct json *json) {
    if (peek(json) == (in_object(json) ? '}' : ']'))
        return close_container(json);
    if (peek(json) != ',')
        return fail(json, "a comma or the container's end was expected");
    skip_mark(json);
    return in_object(json) ? read_key(json) : read_value(json);
}

static enum json_event read_token(struct json *json) {
    switch ((enum state)json->state) {
    case WANT_VALUE_OR_END:
        return peek(json) == ']' ? close_container(json) : read_value(json);
    case WANT_KEY_OR_END:
        return peek(json) == '}' ? close_container(json) : read_key(json);
    case WANT_COLON:
        if (peek(json) != ':')
            return fail(json, "a colon was expected");
        skip_mark(json);
        return read_value(json);
    case WANT_MORE:
        return read_more(json);
    case WANT_END:
        return json->at == json->len ? JSON_END : fail(json, "more follows the value");
    case FAILED:
        return JSON_ERROR;
    default:
        return read_value(json);
    }
}

enum json_event json_next(struct json *json) {
    json->value = NULL;
    json->value_len = 0;
    if (json->state != FAILED) {
        skip_blanks(json);
        json->token = json->at;
    }
    return json->last = read_token(json);
}

enum json_event json_skip(struct json *json, enum json_event event) {
    if (event != JSON_OBJECT && event != JSON_ARRAY)
        return event;
    unsigned outside = json->depth - 1;
    bool undecoded = json->undecoded;
    enum json_event inside = event;
    json->undecoded = true;
    while (json->depth > outside && inside != JSON_ERROR)
        inside = json_next(json);
    json->undecoded = undecoded;
    return inside == JSON_ERROR ? JSON_ERROR : event;
}

size_t json_offset(const struct json *json) {
    return json->at;
}

size_t json_token(const struct json *json) {
    return json->token;
}

/* ---- values ----------------------------------------------------------------------------------------- */

/* len bytes, all digits and at least one. */
static bool plain_digits(const char *text, size_t len, uint64_t *ret_value) {
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] < '0' || text[i] > '9' || !ovf_mul(value, 10, &value) ||
            !ovf_add(value, (uint64_t)(text[i] - '0'), &value))
            return false;
    if (len)
        *ret_value = value;
    return len;
}

bool json_u64(const struct json *json, uint64_t *ret_value) {
    return json->last == JSON_NUMBER && plain_digits(json->value, json->value_len, ret_value);
}

bool json_i64(const struct json *json, int64_t *ret_value) {
    uint64_t size;
    if (json->last != JSON_NUMBER)
        return false;
    bool minus = json->value[0] == '-';
    if (!plain_digits(json->value + minus, json->value_len - minus, &size) || (minus && !size))
        return false;
    if (size > (uint64_t)INT64_MAX + minus)
        return false;
    *ret_value = minus ? -(int64_t)(size - 1) - 1 : (int64_t)size;
    return true;
}

bool json_is(const struct json *json, const char *text) {
    size_t len = strlen(text);
    return (json->last == JSON_KEY || json->last == JSON_STRING) && json->value_len == len &&
           !memcmp(json->value, text, len);
}
