/* SPDX-License-Identifier: Apache-2.0 */
/* The golden files' manifest, read as slices of its own text: numbers stay exact and names keep their NULs.
 */
#ifndef TESTS_UNIT_SLICE_H
#define TESTS_UNIT_SLICE_H

#include "base/json.h"
#include "unit.h"

#include <string.h>

/* The text of one JSON value; at NULL: there is none. */
struct slice {
    const char *at;
    size_t len;
};

/* The value that comes next. */
static inline struct slice slice_here(struct json *json, enum json_event event) {
    size_t start = json_token(json);
    ck_assert_int_ne(json_skip(json, event), JSON_ERROR);
    return (struct slice){json->text + start, json_offset(json) - start};
}

static inline struct slice slice_member(struct slice object, const char *key) {
    struct json json;
    struct slice found = {0};
    json_start(&json, object.at, object.len);
    ck_assert_int_eq(json_next(&json), JSON_OBJECT);
    while (!found.at && json_next(&json) == JSON_KEY) {
        bool wanted = json_is(&json, key);
        struct slice value = slice_here(&json, json_next(&json));
        if (wanted)
            found = value;
    }
    json_stop(&json);
    return found;
}

/* Walks an array: start with a zeroed json; false at the end. */
static inline bool slice_each(struct slice array, struct json *json, struct slice *ret_element) {
    if (!json->text) {
        json_start(json, array.at, array.len);
        ck_assert_int_eq(json_next(json), JSON_ARRAY);
    }
    enum json_event event = json_next(json);
    if (event == JSON_ARRAY_END) {
        json_stop(json);
        return false;
    }
    *ret_element = slice_here(json, event);
    return true;
}

/* A string's text, in memory of the caller's (buf_free). */
static inline struct buf slice_text(struct slice string) {
    struct json json;
    struct buf text = {0};
    json_start(&json, string.at, string.len);
    ck_assert_int_eq(json_next(&json), JSON_STRING);
    buf_put(&text, json.value, json.value_len);
    ck_assert_ptr_nonnull(buf_cstr(&text));
    json_stop(&json);
    return text;
}

static inline uint64_t slice_u64(struct slice number) {
    struct json json;
    uint64_t value = 0;
    json_start(&json, number.at, number.len);
    ck_assert_int_eq(json_next(&json), JSON_NUMBER);
    ck_assert(json_u64(&json, &value));
    json_stop(&json);
    return value;
}

static inline bool slice_is(struct slice value, const char *text) {
    return value.at && value.len == strlen(text) && !memcmp(value.at, text, value.len);
}

/* manifest.json, in memory of the caller's. */
static inline struct buf manifest_load(void) {
    char path[4096], piece[65536];
    struct buf text = {0};
    FILE *file = fopen(unit_golden(path, sizeof path, "manifest.json"), "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;)
        buf_put(&text, piece, got);
    fclose(file);
    ck_assert_ptr_nonnull(buf_cstr(&text));
    return text;
}

/* Calls check for each case of the format and tells how many there were. */
static inline unsigned manifest_each(const char *format, void (*check)(const char *file, struct slice row)) {
    struct buf text = manifest_load();
    struct json json = {0};
    struct slice row;
    unsigned count = 0;
    while (slice_each((struct slice){text.bytes, text.len}, &json, &row)) {
        struct slice named = slice_member(row, "format"), path = slice_member(row, "file");
        if (!named.at || !path.at)
            continue;
        struct buf is = slice_text(named), file = slice_text(path);
        if (!strcmp(buf_cstr(&is), format)) {
            check(buf_cstr(&file), row);
            count++;
        }
        buf_free(&is);
        buf_free(&file);
    }
    buf_free(&text);
    return count;
}

#endif
