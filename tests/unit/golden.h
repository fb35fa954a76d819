/* SPDX-License-Identifier: Apache-2.0 */
/* Golden files in memory, and what is said of them with a place for results. */
#ifndef TESTS_UNIT_GOLDEN_H
#define TESTS_UNIT_GOLDEN_H

#include "slice.h"

#include <inttypes.h>

/* The whole file "tests/golden/NAME"; free it. */
static inline uint8_t *golden_load(const char *name, size_t *ret_len) {
    char path[512];
    FILE *file = fopen(unit_golden(path, sizeof path, name), "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    long len = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc((size_t)len + 1);
    ck_assert_uint_eq(fread(bytes, 1, (size_t)len, file), (size_t)len);
    fclose(file);
    *ret_len = (size_t)len;
    return bytes;
}

/* A member that has to be there. */
static inline struct slice golden_member(struct slice object, const char *key) {
    struct slice value = slice_member(object, key);
    ck_assert_msg(
        value.at != NULL, "no %s in %.*s", key, (int)(object.len < 300 ? object.len : 300), object.at);
    return value;
}

/* The decoded string in `out`, with a NUL; its length. */
static inline size_t golden_text(struct slice value, char *out, size_t cap) {
    struct buf text = slice_text(value);
    size_t len = text.len;
    ck_assert_uint_lt(len, cap);
    memcpy(out, buf_cstr(&text), len + 1);
    buf_free(&text);
    return len;
}

typedef void golden_check(struct slice item, size_t index, void *arg);

/* Every item of an array; how many there are. */
static inline size_t golden_items(struct slice array, golden_check *check, void *arg) {
    struct json json = {0};
    struct slice item;
    size_t count = 0;
    for (; slice_each(array, &json, &item); count++)
        if (check)
            check(item, count, arg);
    return count;
}

/* Every case of one format; the manifest's text lives during the calls only. */
static inline void golden_cases(const char *format, golden_check *check, void *arg) {
    struct buf text = manifest_load();
    struct json json = {0};
    struct slice item;
    size_t count = 0;
    while (slice_each((struct slice){text.bytes, text.len}, &json, &item)) {
        char name[32];
        golden_text(golden_member(item, "format"), name, sizeof name);
        if (!strcmp(name, format))
            check(item, count++, arg);
    }
    ck_assert_uint_gt(count, 10);
    buf_free(&text);
}

#endif
