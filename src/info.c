/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_info_json: the facts of a checkpoint as one document. */
#include "base/err.h"
#include "base/ovf.h"
#include "base/text.h"
#include "ckpt.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT_BYTES_MAX ((uint64_t)16 << 20)

/* 64-bit numbers go in as text: a double would round them. */
static void add_u64(cJSON *object, const char *key, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    cJSON_AddRawToObject(object, key, text);
}

/* ---- tensors ----------------------------------------------------------------------------------------- */

struct sum {
    uint64_t tensors, parameters, bytes;
};

static void sum_add(struct sum *sum, const struct tensor *tensor) {
    sum->tensors++;
    /* Validated against the file's size, except for empty or packed tensors: saturate rather than wrap. */
    if (!ovf_add(sum->parameters, tensor->elements, &sum->parameters))
        sum->parameters = UINT64_MAX;
    if (!ovf_add(sum->bytes, tensor->size, &sum->bytes))
        sum->bytes = UINT64_MAX;
}

static void put_sum(cJSON *object, const char *count_key, const struct sum *sum) {
    add_u64(object, count_key, sum->tensors);
    add_u64(object, "parameters", sum->parameters);
    add_u64(object, "bytes", sum->bytes);
}

/* By stored type: a quantized tensor counts as what it is stored as ("Q4"), not as the F32 it decodes to. */
static cJSON *group_json(const struct group *group) {
    struct sum all = {0}, by_type[DTYPE_COUNT + ENCODING_COUNT] = {{0}};
    for (uint64_t i = 0; i < group->count; i++) {
        const struct tensor *tensor = &group->items[i];
        bool dense = tensor->encoding == ENCODING_DENSE;
        sum_add(&all, tensor);
        sum_add(&by_type[dense ? tensor->dtype : DTYPE_COUNT + tensor->encoding], tensor);
    }
    cJSON *object = cJSON_CreateObject();
    put_sum(object, "count", &all);
    cJSON *types = cJSON_AddObjectToObject(object, "by_dtype");
    for (int type = 0; type < DTYPE_COUNT + ENCODING_COUNT; type++) {
        if (!by_type[type].tensors)
            continue;
        const char *name = type < DTYPE_COUNT                  ? dtype_table[type].name
                           : type - DTYPE_COUNT == ENCODING_Q4 ? "Q4"
                                                               : "Q8";
        put_sum(cJSON_AddObjectToObject(types, name), "tensors", &by_type[type]);
    }
    if (group->damaged)
        cJSON_AddTrueToObject(object, "damaged");
    return object;
}

/* ---- documents: read through the tree, so they are verified -------------------------------------------- */

static char *read_document(struct ckpt *ckpt, const char *path) {
    struct ckpt_stat stat;
    struct ckpt_file *file;
    if (ckpt_resolve(ckpt, path, &stat, NULL) || stat.size > DOCUMENT_BYTES_MAX ||
        ckpt_file_open(ckpt, stat.ino, &file, NULL, NULL))
        return NULL;
    char *text = malloc((size_t)stat.size + 1);
    size_t len = 0;
    int rc = text ? ckpt_file_read(file, 0, text, (size_t)stat.size, &len, NULL, NULL) : CKPT_E_NOMEM;
    ckpt_file_close(file);
    if (rc) {
        free(text);
        return NULL;
    }
    text[len] = '\0';
    return text;
}

/* The document's text with the trailing newline cut off, or null when it is absent or damaged. */
static void add_document(cJSON *object, const char *key, struct ckpt *ckpt, const char *path) {
    char *text = read_document(ckpt, path);
    if (!text) {
        cJSON_AddNullToObject(object, key);
        return;
    }
    size_t len = strlen(text);
    while (len && text[len - 1] == '\n')
        text[--len] = '\0';
    cJSON_AddRawToObject(object, key, text);
    free(text);
}

/* ---- the rest ---------------------------------------------------------------------------------------- */

static void add_sections(cJSON *object, const struct catalog *catalog) {
    cJSON *list = cJSON_AddArrayToObject(object, "sections");
    for (uint32_t i = 0; i < catalog->section_count; i++) {
        const struct section *section = &catalog->sections[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "kind", section->kind);
        add_u64(row, "offset", section->offset);
        add_u64(row, "size", section->size);
        cJSON_AddItemToArray(list, row);
    }
}

static void add_shards(cJSON *object, const struct catalog *catalog) {
    if (!catalog->sharded)
        return;
    cJSON *list = cJSON_AddArrayToObject(object, "shards");
    for (uint32_t i = 0; i < catalog->part_count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(catalog->parts[i].name));
}

static void add_verification(cJSON *object, const struct catalog *catalog) {
    cJSON *verification = cJSON_AddObjectToObject(object, "verification");
    const struct digest_info *digest = &digest_table[catalog_digest(catalog)];
    cJSON_AddStringToObject(verification, "strength", digest->name);
    add_u64(verification, "units", catalog->units.count);
    cJSON_AddStringToObject(verification, "protects_against", digest->against);
}

int ckpt_info_json(struct ckpt *ckpt, char **ret_text, struct ckpt_err *err) {
    const struct catalog *catalog = &ckpt->opened.catalog;
    cJSON *info = cJSON_CreateObject();
    cJSON_AddStringToObject(info, "path", ckpt->opened.source->name);
    cJSON_AddStringToObject(info, "format", catalog->format);
    if (catalog->version)
        add_u64(info, "version", catalog->version);
    else
        cJSON_AddNullToObject(info, "version");
    add_u64(info, "bytes", catalog->source_bytes);
    cJSON_AddBoolToObject(info, "enveloped", catalog->envelope != NULL);
    add_shards(info, catalog);
    cJSON_AddItemToObject(info, "tensors", group_json(&catalog->groups[GROUP_TENSORS]));
    cJSON_AddItemToObject(info, "state", group_json(&catalog->groups[GROUP_STATE]));
    add_document(info, "optimizer", ckpt, "optimizer/optimizer.json");
    add_document(info, "progress", ckpt, "progress.json");
    add_document(info, "config", ckpt, "config.json");
    add_document(info, "metadata", ckpt, "metadata.json");
    add_document(info, "envelope", ckpt, "envelope/envelope.json");
    add_sections(info, catalog);
    add_verification(info, catalog);
    char *text = cJSON_Print(info);
    cJSON_Delete(info);
    if (!text)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory for its facts", ckpt->opened.source->name);
    *ret_text = text;
    return 0;
}
