/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader: its events nest, its offsets move on, its values read back. */
#include "fuzz.h"

#include "base/json.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- values ------------------------------------------------------------------------------------------ */

/* A decoded string, written and read again, is the same. */
static void string_holds(const struct json *json) {
    struct buf text = {0};
    struct json again;
    HOLDS(text_is_utf8(json->value, json->value_len));
    json_put_string(&text, json->value, json->value_len);
    json_start(&again, buf_cstr(&text), text.len);
    HOLDS(json_next(&again) == JSON_STRING && again.value_len == json->value_len);
    HOLDS(!json->value_len || !memcmp(again.value, json->value, json->value_len));
    HOLDS(json_next(&again) == JSON_END);
    json_stop(&again);
    buf_free(&text);
}

/* A plain integer has one text: the one it was read from. */
static void number_holds(const struct json *json) {
    char text[32];
    uint64_t natural;
    int64_t whole;
    HOLDS(json->value_len && json->value == json->text + json_token(json));
    if (json_u64(json, &natural)) {
        int len = snprintf(text, sizeof text, "%" PRIu64, natural);
        HOLDS((size_t)len == json->value_len && !memcmp(text, json->value, json->value_len));
        HOLDS(json_i64(json, &whole) == (natural <= INT64_MAX));
    }
    if (json_i64(json, &whole)) {
        int len = snprintf(text, sizeof text, "%" PRId64, whole);
        HOLDS((size_t)len == json->value_len && !memcmp(text, json->value, json->value_len));
    }
}

static void value_holds(const struct json *json) {
    if (json->last == JSON_KEY || json->last == JSON_STRING)
        string_holds(json);
    else if (json->last == JSON_NUMBER)
        number_holds(json);
    else
        HOLDS(!json->value_len);
}

/* ---- walking ----------------------------------------------------------------------------------------- */

struct nest {
    char kinds[JSON_DEPTH_MAX];
    unsigned depth;
};

static void nest_holds(struct nest *nest, enum json_event event) {
    if (event == JSON_OBJECT || event == JSON_ARRAY) {
        HOLDS(nest->depth < JSON_DEPTH_MAX);
        nest->kinds[nest->depth++] = event == JSON_OBJECT ? '{' : '[';
    } else if (event == JSON_OBJECT_END || event == JSON_ARRAY_END) {
        HOLDS(nest->depth && nest->kinds[--nest->depth] == (event == JSON_OBJECT_END ? '{' : '['));
    } else if (event == JSON_KEY) {
        HOLDS(nest->depth && nest->kinds[nest->depth - 1] == '{');
    }
}

static enum json_event walk(const char *text, size_t len) {
    struct nest nest = {0};
    struct json json;
    enum json_event event;
    size_t before = 0;
    json_start(&json, text, len);
    while ((event = json_next(&json)) != JSON_END && event != JSON_ERROR) {
        HOLDS(before <= json_token(&json) && json_token(&json) < json_offset(&json));
        HOLDS(json_offset(&json) <= len);
        before = json_offset(&json);
        nest_holds(&nest, event);
        value_holds(&json);
    }
    HOLDS(event == JSON_ERROR ? json.error && json_offset(&json) <= len : !nest.depth);
    HOLDS(json_next(&json) == event); /* for good */
    json_stop(&json);
    return event;
}

/* ---- skipping ---------------------------------------------------------------------------------------- */

/* Each member of the outermost container, skipped, is a document of its own. */
static void skip_members(const char *text, size_t len) {
    struct json json;
    json_start(&json, text, len);
    json_next(&json);
    for (enum json_event event; (event = json_next(&json)) != JSON_END;) {
        if (event == JSON_KEY || json.depth == 0)
            continue;
        size_t start = json_token(&json);
        HOLDS(json_skip(&json, event) == event && json.depth == 1);
        HOLDS(json_valid(text + start, json_offset(&json) - start));
    }
    json_stop(&json);
}

static void skip_whole(const char *text, size_t len, bool valid) {
    struct json json;
    json_start(&json, text, len);
    enum json_event event = json_skip(&json, json_next(&json));
    HOLDS((event != JSON_ERROR && json_next(&json) == JSON_END) == valid);
    json_stop(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    bool valid = walk(text, size) == JSON_END;
    HOLDS(json_valid(text, size) == valid);
    skip_whole(text, size, valid);
    if (valid)
        skip_members(text, size);
    return 0;
}
