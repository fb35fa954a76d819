/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in memory with two files beside them, the shards "a" and "b" of a set. */
#include "fuzz.h"

#include <string.h>

struct memory {
    struct source source;
    const uint8_t *bytes;
};

/* A length, the header, two bytes for each of the tensors 0 and 1. */
#define SHARD(name)                                                                                          \
    "\x6f\0\0\0\0\0\0\0{\"" name "0\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"              \
    "\"" name "1\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[2,4]}}    \1\2\3\4"
static const char shards[][sizeof SHARD("a")] = {SHARD("a"), SHARD("b")};

static int memory_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    (void)err;
    uint64_t left = off < source->size ? source->size - off : 0;
    size_t take = len < left ? len : (size_t)left;
    if (take)
        memcpy(buf, ((struct memory *)source)->bytes + off, take);
    *ret_len = take;
    return 0;
}

static int memory_stat(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err) {
    (void)err;
    *ret_stat = source->opened;
    return 0;
}

static int memory_sibling(
    struct source *source, const char *name, struct source **ret_source, struct ckpt_err *err) {
    (void)source;
    HOLDS(*name && !strchr(name, '/') && !strstr(name, ".."));
    if (strcmp(name, "a") != 0 && strcmp(name, "b") != 0)
        return err_set(err, CKPT_E_NOENT, "no such file");
    return source_from_mem(name, shards[*name - 'a'], sizeof shards[0] - 1, ret_source, err);
}

static const struct source_ops memory_ops = {
    .pread = memory_pread, .stat = memory_stat, .sibling = memory_sibling};

struct source *fuzz_source(const void *bytes, size_t len) {
    struct source *source;
    HOLDS(!source_new(sizeof(struct memory), &memory_ops, "memory", &source, NULL));
    ((struct memory *)source)->bytes = bytes;
    source->size = source->opened.size = len;
    return source;
}
