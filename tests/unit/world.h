/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint made by hand: a catalog over a source in memory, its guard and its tree. */
#ifndef TESTS_UNIT_WORLD_H
#define TESTS_UNIT_WORLD_H

#include "base/buf.h"
#include "catalog/catalog.h"
#include "hash/hash.h"
#include "source/source.h"
#include "tree/tree.h"
#include "unit.h"
#include "verify/guard.h"

#include <string.h>

#define WORLD_BYTES 200000

struct world {
    struct catalog catalog;
    struct part part;
    struct unit units[8]; /* added by world_unit */
    uint8_t bytes[WORLD_BYTES];
    struct range parsed[4]; /* what a reader would have parsed; len 0 ends the list */
    struct witness *witness;
    struct source *source;
    struct guard *guard;
    const struct tree_device *device; /* NULL: no gpu/ */
    struct tree *tree;
};

/* Byte i of the source: no two places look alike. */
static inline uint8_t world_byte(uint64_t i) {
    return (uint8_t)((i * 2654435761u) >> 13);
}

static inline struct world *world_new(void) {
    struct world *world = calloc(1, sizeof *world);
    for (uint64_t i = 0; i < WORLD_BYTES; i++)
        world->bytes[i] = world_byte(i);
    world->part = (struct part){.base = 1000, .size = WORLD_BYTES - 1000};
    world->catalog = (struct catalog){.format = "oam", .version = 3, .source_bytes = WORLD_BYTES};
    world->catalog.parts = &world->part;
    world->catalog.part_count = 1;
    return world;
}

/* A tensor at `offset` of the part; its stored bytes are what shape, type and encoding demand. */
static inline struct tensor world_tensor(const char *name, enum dtype dtype, enum encoding encoding,
    const uint64_t *shape, uint32_t rank, uint64_t offset) {
    struct tensor tensor = {.name = name,
        .name_len = (uint32_t)strlen(name),
        .shape = shape,
        .rank = rank,
        .offset = offset,
        .dtype = (uint8_t)dtype,
        .encoding = (uint8_t)encoding,
        .elements = 1};
    for (uint32_t i = 0; i < rank; i++)
        tensor.elements *= shape[i];
    uint64_t blocks = (tensor.elements + 31) / 32;
    tensor.block = encoding == ENCODING_DENSE ? 0 : 32;
    tensor.size = encoding == ENCODING_Q4   ? blocks * 20
                  : encoding == ENCODING_Q8 ? blocks * 36
                                            : tensor.elements * dtype_table[dtype].bits / 8;
    return tensor;
}

/* An FNV-1a unit; a wrong digest when it is to be found damaged. */
static inline void world_unit(
    struct world *world, const char *label, uint64_t off, uint64_t len, bool damaged) {
    struct unit *unit = &world->units[world->catalog.units.count];
    *unit = (struct unit){
        .at = {off, len}, .kind = DIGEST_FNV1A64, .label = label, .index = world->catalog.units.count};
    ck_assert_int_eq(hash_bytes(HASH_FNV1A64, world->bytes + off, len, unit->digest, NULL), 0);
    unit->digest[3] ^= damaged;
    world->catalog.units.list = world->units;
    world->catalog.units.count++;
}

static inline void world_build_in(struct world *world, enum ckpt_verify_mode mode) {
    struct ckpt_err err = {0};
    const struct guard_options options = {.mode = mode};
    ck_assert_int_eq(source_from_mem("world", world->bytes, WORLD_BYTES, &world->source, &err), 0);
    ck_assert_int_eq(witness_new(world->source, &world->witness, &err), 0);
    world->source = witness_source(world->witness);
    for (unsigned i = 0; i < 4 && world->parsed[i].len; i++) {
        uint8_t bytes[1000];
        ck_assert_uint_le(world->parsed[i].len, sizeof bytes);
        ck_assert_int_eq(
            source_read(world->source, world->parsed[i].off, bytes, world->parsed[i].len, &err), 0);
    }
    witness_seal(world->witness);
    int rc = guard_new(world->source, &world->catalog.units, world->witness, &options, &world->guard, &err);
    ck_assert_msg(!rc, "%s", err.msg);
    rc = tree_new(&world->catalog, world->guard, world->device, &world->tree, &err);
    ck_assert_msg(!rc, "%s", err.msg);
}

static inline void world_build(struct world *world) {
    world_build_in(world, CKPT_VERIFY_LAZY);
}

static inline void world_free(struct world *world) {
    tree_free(world->tree);
    guard_free(world->guard);
    source_close(world->source);
    witness_free(world->witness);
    free(world);
}

/* The inode of a path; 0 when there is none. */
static inline uint64_t world_find(struct world *world, const char *path) {
    struct ckpt_stat at = {.ino = 1};
    char copy[600];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *name = strtok(copy, "/"); name; name = strtok(NULL, "/"))
        if (tree_lookup(world->tree, at.ino, name, &at, NULL))
            return 0;
    return at.ino;
}

static inline struct ckpt_stat world_stat(struct world *world, const char *path) {
    struct ckpt_stat stat;
    struct ckpt_err err = {0};
    uint64_t ino = world_find(world, path);
    ck_assert_msg(ino, "no %s", path);
    ck_assert_msg(!tree_stat(world->tree, ino, &stat, &err), "%s: %s", path, err.msg);
    return stat;
}

/* The whole of an inode's file, in one read. */
static inline int world_read(struct world *world, uint64_t ino, struct buf *ret_bytes, struct ckpt_err *err) {
    struct tree_file *file;
    int rc = tree_open(world->tree, ino, &file, NULL, err);
    if (rc)
        return rc;
    uint64_t size = tree_file_size(file);
    size_t got = 0;
    char *bytes = malloc(size + 16);
    rc = tree_read(file, 0, bytes, size + 16, &got, NULL, err);
    ck_assert(rc || got == size);
    tree_close(file);
    if (!rc)
        buf_put(ret_bytes, bytes, size);
    free(bytes);
    return rc;
}

/* The content of a path, which must be readable; a C string as well. */
static inline struct buf world_cat(struct world *world, const char *path) {
    struct buf bytes = {0};
    struct ckpt_err err = {0};
    uint64_t ino = world_find(world, path);
    ck_assert_msg(ino, "no %s", path);
    int rc = world_read(world, ino, &bytes, &err);
    ck_assert_msg(!rc, "%s: %s", path, err.msg);
    buf_cstr(&bytes);
    return bytes;
}

/* The error that reading a path gives. */
static inline struct ckpt_err world_fault(struct world *world, const char *path) {
    struct buf bytes = {0};
    struct ckpt_err err = {0};
    uint64_t ino = world_find(world, path);
    ck_assert_msg(ino, "no %s", path);
    ck_assert_msg(world_read(world, ino, &bytes, &err), "%s can be read", path);
    return err;
}

#endif
