/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a sharded set: its map alone, and as a whole with two shards, "a" and "b". */
#include "fuzz.h"

#include "format/index.h"

#include <stdlib.h>
#include <string.h>

/* ---- an index in memory with files beside it ----------------------------------------------------------- */

struct set_source {
    struct source source;
    const uint8_t *bytes;
};

/* A length, the header, two bytes for each of the tensors 0 and 1. */
#define SHARD(name)                                                                                          \
    "\x6f\0\0\0\0\0\0\0{\"" name "0\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"              \
    "\"" name "1\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[2,4]}}    \1\2\3\4"
static const char shards[][sizeof SHARD("a")] = {SHARD("a"), SHARD("b")};

static int set_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    (void)err;
    uint64_t left = off < source->size ? source->size - off : 0;
    size_t take = len < left ? len : (size_t)left;
    if (take)
        memcpy(buf, ((struct set_source *)source)->bytes + off, take);
    *ret_len = take;
    return 0;
}

static int set_stat(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err) {
    (void)err;
    *ret_stat = source->opened;
    return 0;
}

static int set_sibling(
    struct source *source, const char *name, struct source **ret_source, struct ckpt_err *err) {
    (void)source;
    HOLDS(*name && !strchr(name, '/') && !strstr(name, ".."));
    if (strcmp(name, "a") != 0 && strcmp(name, "b") != 0)
        return err_set(err, CKPT_E_NOENT, "no such file");
    return source_from_mem(name, shards[*name - 'a'], sizeof shards[0] - 1, ret_source, err);
}

static const struct source_ops set_ops = {.pread = set_pread, .stat = set_stat, .sibling = set_sibling};

static struct source *set_open(const uint8_t *data, size_t size) {
    struct source *source;
    HOLDS(!source_new(sizeof(struct set_source), &set_ops, "x.safetensors.index.json", &source, NULL));
    ((struct set_source *)source)->bytes = data;
    source->size = source->opened.size = size;
    return source;
}

/* ---- what must hold ---------------------------------------------------------------------------------- */

/* Returns how many tensors are mapped; -1 when the index is refused. */
static int64_t read_map(const uint8_t *data, size_t size) {
    struct index_map map;
    struct ckpt_err err = {0};
    struct source *source = set_open(data, size);
    int rc = index_map_read(source, &map, &err);
    fuzz_error_holds(rc, &err);
    for (size_t i = 1; !rc && i < map.count; i++)
        HOLDS(mapping_compare(&map.list[i - 1], &map.list[i]) < 0);
    int64_t count = rc ? -1 : (int64_t)map.count;
    index_map_free(&map);
    source_close(source);
    return count;
}

static void set_holds(struct source *source, const struct catalog *catalog, int64_t mapped) {
    const struct group *group = &catalog->groups[GROUP_TENSORS];
    HOLDS(source->size == catalog->source_bytes && (int64_t)group->count == mapped);
    fuzz_catalog_holds(catalog);
    for (uint64_t i = 0; i < group->count; i++) {
        struct range at = tensor_range(catalog, &group->items[i]);
        char bytes[2], first = group->items[i].name[1] == '0' ? 1 : 3;
        HOLDS(at.len == sizeof bytes && !source_read(source, at.off, bytes, sizeof bytes, NULL));
        HOLDS(bytes[0] == first && bytes[1] == first + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct catalog catalog = {0};
    struct ckpt_err err = {0};
    struct fuzz_court court = {.catalog = &catalog};
    const struct unit_judge judge = fuzz_judge(&court);
    struct source *source = set_open(data, size);
    int64_t mapped = read_map(data, size);
    int rc = format_index.parse(&source, 0, &judge, &catalog, &err);
    fuzz_error_holds(rc, &err);
    if (!rc)
        set_holds(source, &catalog, mapped);
    source_close(source);
    catalog_free(&catalog);
    return 0;
}
