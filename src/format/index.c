/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sharded set: an index that maps each tensor to a safetensors file beside it. Shard by shard, the tensors
 * that are mapped to it are taken from its header.
 */
#include "format/index.h"

#include "base/ovf.h"
#include "base/quote.h"
#include "format/format.h"
#include "format/mistake.h"
#include "format/safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct set {
    struct catalog *catalog;
    struct index_map map;
    struct source **sources; /* [0] is left for the index, then the shards as far as they are open */
    uint32_t open;
};

static bool probe(const uint8_t *head, size_t head_len, uint64_t size) {
    (void)size;
    size_t at = 0;
    while (at < head_len && memchr(" \t\r\n", head[at], 4))
        at++;
    return at < head_len && head[at] == '{';
}

static int no_memory(struct ckpt_err *err) {
    return err_set(err, CKPT_E_NOMEM, "no memory for the index");
}

static int check_shard_name(const struct index_text *shard, const char *quoted, struct ckpt_err *err) {
    const char *name = shard->bytes;
    if (shard->len && strlen(name) == shard->len && !strchr(name, '/') && !strstr(name, ".."))
        return 0;
    return err_set(err, CKPT_E_CORRUPT,
        "weight_map names the file %s, which would not be a file beside the index: not opened", quoted);
}

/* A missing shard is the set's fault, not the system's. Not every source has an errno to tell by. */
static int open_shard(struct source *index, const struct index_text *shard, const char *quoted,
    struct source **ret_source, struct ckpt_err *err) {
    struct ckpt_err own;
    int rc = check_shard_name(shard, quoted, err);
    if (rc)
        return rc;
    rc = source_sibling(index, shard->bytes, ret_source, &own);
    if (rc == CKPT_E_NOENT || (rc == CKPT_E_IO && (own.os_errno == ENOENT || own.os_errno == ENAMETOOLONG)))
        return err_set(
            err, CKPT_E_CORRUPT, "the file %s, which weight_map names, is not beside the index", quoted);
    if (rc && err)
        *err = own;
    return rc ? err_wrap(err, rc, "shard %s", quoted) : 0;
}

/* Shards are pointers or error pages as often as single files are. */
static int check_mistake(struct source *shard, struct ckpt_err *err) {
    uint8_t head[512];
    size_t len = (size_t)ovf_min(sizeof head, shard->size);
    int rc = source_read(shard, 0, head, len, err);
    return rc || safetensors_starts(head, len) ? rc : mistake_check(head, len, err);
}

static int check_found(const struct mapping *map, size_t count, const char *shard, struct ckpt_err *err) {
    struct quoted name;
    for (size_t i = 0; i < count; i++)
        if (!map[i].found)
            return err_set(err, CKPT_E_CORRUPT, "tensor %s is not in the file %s, where weight_map puts it",
                quote(&name, map[i].name.bytes, map[i].name.len), shard);
    return 0;
}

/* Takes those of the shard's tensors that its run of the map names. */
static void take_tensors(struct set *set, const struct safetensors *file, struct mapping *map, size_t count) {
    struct group *group = &set->catalog->groups[GROUP_TENSORS];
    for (uint64_t i = 0; i < file->count; i++) {
        const struct tensor *tensor = &file->items[i];
        struct mapping key = {.shard = map->shard, .name = {tensor->name, tensor->name_len}};
        struct mapping *mapping = bsearch(&key, map, count, sizeof *map, mapping_compare);
        if (!mapping)
            continue;
        mapping->found = true;
        group->items[group->count] = *tensor;
        group->items[group->count++].part = set->catalog->part_count - 1;
    }
}

static int read_shard(
    struct set *set, struct source *index, struct mapping *map, size_t count, struct ckpt_err *err) {
    struct catalog *catalog = set->catalog;
    struct quoted quoted;
    quote(&quoted, map->shard.bytes, map->shard.len);
    struct source *shard;
    int rc = open_shard(index, &map->shard, quoted.text, &shard, err);
    if (rc)
        return rc;
    set->sources[set->open++] = shard;
    struct part *part = &catalog->parts[catalog->part_count++];
    part->name = arena_text(&catalog->arena, map->shard.bytes, map->shard.len);
    part->base = catalog->source_bytes;
    part->size = shard->size;
    if (!part->name)
        return no_memory(err);
    if (!ovf_add(catalog->source_bytes, shard->size, &catalog->source_bytes))
        return err_set(err, CKPT_E_CORRUPT, "the shards have 2^64 bytes or more");
    struct safetensors file;
    rc = check_mistake(shard, err);
    if (!rc)
        rc = safetensors_read(shard, &catalog->arena, &file, err);
    if (rc)
        return err_wrap(err, rc, "shard %s", quoted.text);
    part->metadata = file.metadata;
    part->metadata_len = file.metadata_len;
    take_tensors(set, &file, map, count);
    return check_found(map, count, quoted.text, err);
}

static bool same(const struct index_text *a, const struct index_text *b) {
    return a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

/* Where the run of mappings with list[from]'s shard ends. */
static size_t run_end(const struct index_map *map, size_t from) {
    size_t end = from + 1;
    while (end < map->count && same(&map->list[from].shard, &map->list[end].shard))
        end++;
    return end;
}

static int read_shards(struct set *set, struct source *index, struct ckpt_err *err) {
    struct catalog *catalog = set->catalog;
    size_t shards = 0;
    for (size_t at = 0; at < set->map.count; at = run_end(&set->map, at))
        shards++;
    set->sources = calloc(shards + 1, sizeof(struct source *)); /* and the index, in front */
    catalog->parts = arena_alloc(&catalog->arena, shards, sizeof *catalog->parts);
    struct tensor *items = arena_alloc(&catalog->arena, set->map.count, sizeof *items);
    if (!set->sources || !catalog->parts || !items)
        return no_memory(err);
    catalog->groups[GROUP_TENSORS].items = items;
    catalog->source_bytes = index->size;
    set->open = 1;
    for (size_t at = 0, end; at < set->map.count; at = end) {
        end = run_end(&set->map, at);
        int rc = read_shard(set, index, &set->map.list[at], end - at, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- the catalog ------------------------------------------------------------------------------------ */

static int fill(struct set *set, struct range index, struct ckpt_err *err) {
    struct catalog *catalog = set->catalog;
    struct document *document = arena_alloc(&catalog->arena, 1, sizeof *document);
    const char *metadata = arena_text(&catalog->arena, set->map.metadata, set->map.metadata_len);
    if (!document || !metadata)
        return no_memory(err);
    *document = (struct document){
        .path = "metadata.json", .json = metadata, .json_len = set->map.metadata_len, .from = index};
    catalog->format = format_index.name;
    catalog->groups[GROUP_TENSORS].present = true;
    catalog->groups[GROUP_TENSORS].index = index;
    catalog->exports = true;
    catalog->sharded = true;
    catalog->documents = document;
    catalog->document_count = 1;
    catalog->head = index;
    return 0;
}

/* The index and its shards become one source, which owns them. */
static int join(struct set *set, struct source **source, struct ckpt_err *err) {
    struct source *joined;
    set->sources[0] = *source;
    uint32_t count = set->open;
    set->open = 0;
    int rc = source_concat((*source)->name, set->sources, count, &joined, err);
    *source = rc ? NULL : joined; /* what was given to source_concat is closed when it fails */
    return rc;
}

static int parse(struct source **source, uint64_t base, const struct unit_judge *judge,
    struct catalog *catalog, struct ckpt_err *err) {
    (void)judge; /* no units here */
    struct set set = {.catalog = catalog};
    int rc = index_map_read(*source, &set.map, err);
    if (!rc)
        rc = read_shards(&set, *source, err);
    if (!rc)
        rc = fill(&set, (struct range){base, (*source)->size}, err);
    if (!rc)
        rc = join(&set, source, err);
    for (uint32_t i = 1; i < set.open; i++)
        source_close(set.sources[i]);
    free(set.sources);
    index_map_free(&set.map);
    return rc;
}

const struct format format_index = {
    .name = "safetensors-index", .probe = probe, .suffix = ".index.json", .parse = parse};
