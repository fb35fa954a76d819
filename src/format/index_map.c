/* SPDX-License-Identifier: Apache-2.0 */
#include "format/index.h"

#include "base/ovf.h"
#include "base/quote.h"
#include "format/format.h"
#include "format/object.h"
#include "format/safetensors_layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct ckpt_err *err) {
    return err_set(err, CKPT_E_NOMEM, "no memory for the index");
}

static int compare_texts(const struct index_text *a, const struct index_text *b) {
    int order = memcmp(a->bytes, b->bytes, ovf_min(a->len, b->len));
    return order ? order : (a->len > b->len) - (a->len < b->len);
}

int mapping_compare(const void *a, const void *b) {
    const struct mapping *left = a, *right = b;
    int order = compare_texts(&left->shard, &right->shard);
    return order ? order : compare_texts(&left->name, &right->name);
}

static bool keep(struct index_map *map, const struct json *json, struct index_text *ret_text) {
    const char *copy = arena_text(&map->texts, json->value, json->value_len);
    if (copy)
        *ret_text = (struct index_text){copy, (uint32_t)json->value_len};
    return copy;
}

static struct mapping *new_mapping(struct index_map *map) {
    if (map->count == map->cap) {
        size_t cap = map->cap ? map->cap * 2 : 64;
        struct mapping *list = realloc(map->list, cap * sizeof *list);
        if (!list)
            return NULL;
        map->list = list;
        map->cap = cap;
    }
    map->list[map->count] = (struct mapping){0};
    return &map->list[map->count++];
}

/* One member of weight_map, whose key was just read. */
static int read_mapping(struct index_map *map, struct json *json, struct ckpt_err *err) {
    struct mapping *mapping = new_mapping(map);
    if (!mapping || !keep(map, json, &mapping->name))
        return no_memory(err);
    struct quoted quoted;
    if (json_next(json) != JSON_STRING)
        return err_set(err, CKPT_E_CORRUPT, "weight_map: the file of tensor %s is not a string",
            quote(&quoted, mapping->name.bytes, mapping->name.len));
    /* Writers list a shard's tensors together: its name is kept once a run. */
    const struct mapping *before = map->count > 1 ? mapping - 1 : NULL;
    if (before && before->shard.len == json->value_len &&
        !memcmp(before->shard.bytes, json->value, json->value_len)) {
        mapping->shard = before->shard;
        return 0;
    }
    return keep(map, json, &mapping->shard) ? 0 : no_memory(err);
}

/* Calls `member` for each key of an object, whose text `what` names in messages. */
static int each_member(struct index_map *map, const char *text, size_t len, const char *what,
    int (*member)(struct index_map *map, struct json *json, struct ckpt_err *err), struct ckpt_err *err) {
    uint64_t members;
    int rc = object_survey(text, len, what, JSON_DEPTH_MAX, &members, NULL, err);
    if (rc)
        return rc;
    struct json json;
    json_start(&json, text, len);
    json_next(&json);
    while (!rc && json_next(&json) == JSON_KEY)
        rc = member(map, &json, err);
    int memory = json_no_memory(&json, err); /* then what was said of the text means nothing */
    json_stop(&json);
    return memory ? memory : rc;
}

/* Any value: it is shown as it stands. */
static int read_metadata(struct index_map *map, const char *text, size_t len, struct ckpt_err *err) {
    map->metadata = arena_text(&map->texts, text, len);
    map->metadata_len = len;
    return map->metadata ? 0 : no_memory(err);
}

/* One member of the index, whose key was just read; other keys are passed over. */
static int read_member(struct index_map *map, struct json *json, struct ckpt_err *err) {
    bool is_map = json_is(json, SAFETENSORS_INDEX_MAP);
    bool is_metadata = json_is(json, SAFETENSORS_INDEX_METADATA);
    enum json_event event = json_next(json);
    size_t start = json_token(json);
    json_skip(json, event);
    const char *text = json->text + start;
    size_t len = json_offset(json) - start;
    map->mapped |= is_map;
    if (is_map)
        return each_member(map, text, len, SAFETENSORS_INDEX_MAP, read_mapping, err);
    return is_metadata ? read_metadata(map, text, len, err) : 0;
}

static int read_text(struct index_map *map, const char *text, size_t len, struct ckpt_err *err) {
    int rc = each_member(map, text, len, "the index", read_member, err);
    if (!rc && !map->mapped)
        return err_set(err, CKPT_E_CORRUPT, "the index has no " SAFETENSORS_INDEX_MAP);
    return rc;
}

static int load(struct index_map *map, struct source *source, struct ckpt_err *err) {
    if (source->size > SAFETENSORS_INDEX_MAX)
        return err_set(err, CKPT_E_LIMIT, "the index has %" PRIu64 " bytes, at most %" PRIu64 " are read",
            source->size, SAFETENSORS_INDEX_MAX);
    char *text;
    int rc = object_load(source, 0, (size_t)source->size, &text, err);
    if (rc)
        return rc;
    rc = read_text(map, text, (size_t)source->size, err);
    free(text);
    return rc;
}

/* Many files start with '{'; one that neither has a map nor the name of an index is no damaged index. */
static int read_index(struct index_map *map, struct source *source, struct ckpt_err *err) {
    int rc = load(map, source, err);
    if ((rc != CKPT_E_CORRUPT && rc != CKPT_E_LIMIT) || map->mapped)
        return rc;
    size_t len = strlen(source->name), tail = strlen(format_index.suffix);
    if (len >= tail && !strcmp(source->name + len - tail, format_index.suffix))
        return rc;
    return err_set(err, CKPT_E_FORMAT,
        "not a checkpoint: it starts as JSON does, but is no index of safetensors files (no " SAFETENSORS_INDEX_MAP
        ")");
}

int index_map_read(struct source *source, struct index_map *map, struct ckpt_err *err) {
    *map = (struct index_map){.metadata = "{}", .metadata_len = 2};
    int rc = read_index(map, source, err);
    if (!rc && map->count)
        qsort(map->list, map->count, sizeof *map->list, mapping_compare);
    return rc;
}

void index_map_free(struct index_map *map) {
    free(map->list);
    arena_free(&map->texts);
}
