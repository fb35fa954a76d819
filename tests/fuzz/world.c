/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

/* ---- opening ----------------------------------------------------------------------------------------- */

static int parse(struct world *world, struct source *file, struct ckpt_err *err) {
    struct fuzz_court court = {.file = file, .catalog = &world->catalog};
    const struct unit_judge judge = fuzz_judge(&court);
    int rc = format_parse(&world->source, &judge, &world->catalog, err);
    witness_seal(world->witness);
    return rc;
}

static int build(struct world *world, struct ckpt_err *err) {
    static const struct guard_options options = {.mode = CKPT_VERIFY_LAZY, .cache_bytes = 1 << 20};
    int rc = guard_new(world->source, &world->catalog.units, world->witness, &options, &world->guard, err);
    return rc ? rc : tree_new(&world->catalog, world->guard, NULL, &world->tree, err);
}

static bool is_sound(const uint8_t *data, size_t size) {
    struct catalog catalog;
    int rc = fuzz_parse(NULL, data, size, true, &catalog);
    catalog_free(&catalog);
    return !rc;
}

bool world_open(struct world *ret_world, const uint8_t *data, size_t size) {
    struct ckpt_err err = {0};
    struct source *file = fuzz_source(data, size);
    *ret_world = (struct world){0};
    HOLDS(!witness_new(file, &ret_world->witness, NULL));
    ret_world->source = witness_source(ret_world->witness);
    int rc = parse(ret_world, file, &err);
    if (!rc)
        rc = build(ret_world, &err);
    fuzz_error_holds(rc, &err);
    ret_world->sound = is_sound(data, size);
    HOLDS(!rc || !ret_world->sound || rc == CKPT_E_LIMIT);
    return !rc;
}

void world_close(struct world *world) {
    tree_free(world->tree);
    guard_free(world->guard);
    source_close(world->source);
    witness_free(world->witness);
    catalog_free(&world->catalog);
}

/* ---- walking ----------------------------------------------------------------------------------------- */

static void attributes_hold(struct world *world, uint64_t ino) {
    char names[512], *value = NULL;
    size_t len, value_len;
    HOLDS(!tree_xattr_list(world->tree, ino, names, sizeof names, &len, NULL));
    for (size_t at = 0; at < len; at += strlen(names + at) + 1) {
        HOLDS(!tree_xattr_get(world->tree, ino, names + at, NULL, 0, &value_len, NULL));
        value = malloc(value_len);
        HOLDS(!tree_xattr_get(world->tree, ino, names + at, value, value_len, &value_len, NULL));
        free(value);
    }
}

static void entry_holds(struct world *world, const struct ckpt_stat *dir, const struct ckpt_dirent *entry) {
    struct ckpt_stat stat;
    const char *name = entry->name;
    HOLDS(*name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    HOLDS(entry->stat.parent == dir->ino);
    HOLDS(!tree_lookup(world->tree, dir->ino, name, &stat, NULL) && stat.ino == entry->stat.ino);
    HOLDS(!tree_stat(world->tree, stat.ino, &stat, NULL) && stat.kind == entry->stat.kind);
    HOLDS(stat.dynamic || stat.size == entry->stat.size);
    attributes_hold(world, stat.ino);
}

static void walk_directory(
    struct world *world, const struct ckpt_stat *dir, uint8_t *seen, world_file *file, void *arg) {
    struct ckpt_dirent entry;
    uint32_t folders = 0;
    for (uint64_t i = 0; i < dir->size; i++) {
        HOLDS(!tree_entry(world->tree, dir->ino, i, &entry, NULL));
        entry_holds(world, dir, &entry);
        HOLDS(!seen[entry.stat.ino - 1]++);
        folders += entry.stat.kind == CKPT_DIR;
        if (entry.stat.kind == CKPT_FILE)
            file(world, &entry, arg);
    }
    HOLDS(dir->nlink == 2 + folders);
    HOLDS(tree_entry(world->tree, dir->ino, dir->size, &entry, NULL) == CKPT_E_NOENT);
}

void world_walk(struct world *world, world_file *file, void *arg) {
    uint64_t count = tree_count(world->tree);
    uint8_t *seen = calloc(count, 1);
    struct ckpt_stat stat;
    HOLDS(seen && tree_stat(world->tree, 0, &stat, NULL) == CKPT_E_NOENT);
    HOLDS(tree_stat(world->tree, count + 1, &stat, NULL) == CKPT_E_NOENT);
    seen[0] = 1; /* the root is nobody's entry */
    for (uint64_t ino = 1; ino <= count; ino++) {
        HOLDS(!tree_stat(world->tree, ino, &stat, NULL) && stat.ino == ino);
        if (stat.kind == CKPT_DIR)
            walk_directory(world, &stat, seen, file, arg);
    }
    for (uint64_t ino = 1; ino <= count; ino++)
        HOLDS(seen[ino - 1]);
    free(seen);
}

/* ---- contents ---------------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *suffix) {
    size_t len = strlen(name), tail = strlen(suffix);
    return len >= tail && !strcmp(name + len - tail, suffix);
}

/* The export reads back, with as many tensors as it can hold. */
static void export_holds(const uint8_t *bytes, size_t len) {
    struct catalog catalog;
    HOLDS(!fuzz_parse(&format_safetensors, bytes, len, true, &catalog));
    catalog_free(&catalog);
}

void world_file_holds(const char *name, const uint8_t *bytes, size_t len, uint64_t size) {
    static const char npy[] = "\x93NUMPY\1";
    if (len < size)
        return;
    if (ends_with(name, ".json"))
        HOLDS(json_valid((const char *)bytes, len) || json_python((const char *)bytes, len));
    if (ends_with(name, ".safetensors"))
        export_holds(bytes, len);
    if (ends_with(name, ".npy"))
        HOLDS(len >= 64 && !memcmp(bytes, npy, sizeof npy - 1));
}
