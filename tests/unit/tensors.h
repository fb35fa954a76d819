/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing files in tests, and holding what a reader found against the golden manifest. */
#ifndef TESTS_UNIT_TENSORS_H
#define TESTS_UNIT_TENSORS_H

#include "format/format.h"
#include "slice.h"

#include <openssl/sha.h>

/* A parse and everything that it needs; close_parsed in any case. */
struct parsed {
    struct source *source;
    struct catalog catalog;
    struct ckpt_err err;
    int rc;
};

static inline void parse_source(struct parsed *parsed, struct source *source) {
    static const struct unit_judge judge = {0};
    parsed->source = source;
    parsed->catalog = (struct catalog){0};
    parsed->err = (struct ckpt_err){0};
    parsed->rc = format_parse(&parsed->source, &judge, &parsed->catalog, &parsed->err);
    if (!parsed->rc)
        return;
    ck_assert_int_eq(parsed->err.code, parsed->rc);
    ck_assert_str_ne(parsed->err.msg, "");
    for (const char *at = parsed->err.msg; *at; at++)
        ck_assert_msg((unsigned char)*at >= 0x20 && *at != 0x7f, "control byte in: %s", parsed->err.msg);
}

static inline void parse_file(struct parsed *parsed, const char *path) {
    struct source *source;
    struct ckpt_err err;
    ck_assert_msg(source_open_file(path, &source, &err) == 0, "%s", err.msg);
    parse_source(parsed, source);
}

static inline void parse_golden(struct parsed *parsed, const char *name) {
    char path[4096];
    parse_file(parsed, unit_golden(path, sizeof path, name));
}

static inline void parse_bytes(struct parsed *parsed, const char *name, const void *bytes, size_t len) {
    struct source *source;
    ck_assert_int_eq(source_from_mem(name, bytes, len, &source, NULL), 0);
    parse_source(parsed, source);
}

static inline void close_parsed(struct parsed *parsed) {
    catalog_free(&parsed->catalog);
    source_close(parsed->source);
}

static inline const struct tensor *find_tensor(const struct catalog *catalog, const char *name, size_t len) {
    const struct group *group = &catalog->groups[GROUP_TENSORS];
    for (uint64_t i = 0; i < group->count; i++)
        if (group->items[i].name_len == len && !memcmp(group->items[i].name, name, len))
            return &group->items[i];
    return NULL;
}

static inline void check_stored(struct parsed *parsed, const struct tensor *tensor, struct slice sha256) {
    struct range at = tensor_range(&parsed->catalog, tensor);
    ck_assert_uint_eq(at.len, tensor->size);
    char *bytes = malloc(at.len + 1), hex[65] = {0};
    ck_assert_int_eq(source_read(parsed->source, at.off, bytes, at.len, NULL), 0);
    uint8_t digest[32];
    SHA256((const uint8_t *)bytes, at.len, digest);
    for (int i = 0; i < 32; i++)
        sprintf(hex + 2 * i, "%02x", digest[i]);
    struct buf want = slice_text(sha256);
    ck_assert_str_eq(hex, buf_cstr(&want));
    buf_free(&want);
    free(bytes);
}

static inline void check_shape(const struct tensor *tensor, struct slice shape) {
    struct json json = {0};
    struct slice extent;
    uint32_t rank = 0;
    for (; slice_each(shape, &json, &extent); rank++) {
        ck_assert_uint_lt(rank, tensor->rank);
        ck_assert_uint_eq(tensor->shape[rank], slice_u64(extent));
    }
    ck_assert_uint_eq(rank, tensor->rank);
}

/* One row of a case's "tensors"; returns the tensor. */
static inline const struct tensor *check_tensor(struct parsed *parsed, struct slice row) {
    struct buf name = slice_text(slice_member(row, "name")), dtype = slice_text(slice_member(row, "dtype"));
    const struct tensor *tensor = find_tensor(&parsed->catalog, name.bytes, name.len);
    ck_assert_msg(tensor != NULL, "no tensor %s", buf_cstr(&name));
    ck_assert_str_eq(dtype_table[tensor->dtype].name, buf_cstr(&dtype));
    ck_assert_uint_eq(tensor->size, slice_u64(slice_member(row, "nbytes")));
    ck_assert_int_eq(tensor->encoding, ENCODING_DENSE);
    check_shape(tensor, slice_member(row, "shape"));
    check_stored(parsed, tensor, slice_member(row, "sha256"));
    buf_free(&name);
    buf_free(&dtype);
    return tensor;
}

/* All rows of a case's "tensors", and that there are no others. */
static inline void check_tensors(struct parsed *parsed, struct slice rows) {
    struct json json = {0};
    struct slice row;
    uint64_t count = 0;
    for (; slice_each(rows, &json, &row); count++)
        check_tensor(parsed, row);
    ck_assert_uint_eq(count, parsed->catalog.groups[GROUP_TENSORS].count);
}

#endif
