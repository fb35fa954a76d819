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

/* What is being put together, and whether memory ran out on the way: it is looked at once, at the end. */
struct facts {
    struct ckpt *ckpt;
    bool failed;
};

static cJSON *kept(struct facts *facts, cJSON *item) {
    facts->failed |= !item;
    return item;
}

static void add_text(struct facts *facts, cJSON *object, const char *key, const char *text) {
    kept(facts, cJSON_AddStringToObject(object, key, text));
}

/* 64-bit numbers go in as text: a double would round them. */
static void add_u64(struct facts *facts, cJSON *object, const char *key, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    kept(facts, cJSON_AddRawToObject(object, key, text));
}

static void add_item(struct facts *facts, cJSON *list, cJSON *item) {
    if (kept(facts, item) && !cJSON_AddItemToArray(list, item)) {
        cJSON_Delete(item);
        facts->failed = true;
    }
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

static void put_sum(struct facts *facts, cJSON *object, const char *count_key, const struct sum *sum) {
    add_u64(facts, object, count_key, sum->tensors);
    add_u64(facts, object, "parameters", sum->parameters);
    add_u64(facts, object, "bytes", sum->bytes);
}

/* By stored type: a quantized tensor counts as what it is stored as ("Q4"), not as the F32 it decodes to. */
static void add_group(struct facts *facts, cJSON *info, const char *key, const struct group *group) {
    struct sum all = {0}, by_type[DTYPE_COUNT + ENCODING_COUNT] = {{0}};
    for (uint64_t i = 0; i < group->count; i++) {
        const struct tensor *tensor = &group->items[i];
        bool dense = tensor->encoding == ENCODING_DENSE;
        sum_add(&all, tensor);
        sum_add(&by_type[dense ? tensor->dtype : DTYPE_COUNT + tensor->encoding], tensor);
    }
    cJSON *object = kept(facts, cJSON_AddObjectToObject(info, key));
    put_sum(facts, object, "count", &all);
    cJSON *types = kept(facts, cJSON_AddObjectToObject(object, "by_dtype"));
    for (int type = 0; type < DTYPE_COUNT + ENCODING_COUNT; type++) {
        if (!by_type[type].tensors)
            continue;
        const char *name = type < DTYPE_COUNT                  ? dtype_table[type].name
                           : type - DTYPE_COUNT == ENCODING_Q4 ? "Q4"
                                                               : "Q8";
        put_sum(facts, kept(facts, cJSON_AddObjectToObject(types, name)), "tensors", &by_type[type]);
    }
    if (group->damaged)
        kept(facts, cJSON_AddTrueToObject(object, "damaged"));
}

/* ---- documents: read through the tree, so they are verified -------------------------------------------- */

/* Errors: those of reading a file. */
static int read_document(struct ckpt *ckpt, const char *path, char **ret_text) {
    struct ckpt_stat stat;
    struct ckpt_file *file;
    int rc = ckpt_resolve(ckpt, path, &stat, NULL);
    if (!rc && stat.size > DOCUMENT_BYTES_MAX)
        rc = CKPT_E_LIMIT;
    if (!rc)
        rc = ckpt_file_open(ckpt, stat.ino, &file, NULL, NULL);
    if (rc)
        return rc;
    char *text = malloc((size_t)stat.size + 1);
    size_t len = 0;
    rc = text ? ckpt_file_read(file, 0, text, (size_t)stat.size, &len, NULL, NULL) : CKPT_E_NOMEM;
    ckpt_file_close(file);
    if (rc) {
        free(text);
        return rc;
    }
    text[len] = '\0';
    *ret_text = text;
    return 0;
}

/* The document's text with the trailing newline cut off, or null when it is absent or damaged. */
static void add_document(struct facts *facts, cJSON *object, const char *key, const char *path) {
    char *text;
    int rc = read_document(facts->ckpt, path, &text);
    facts->failed |= rc == CKPT_E_NOMEM;
    if (rc) {
        kept(facts, cJSON_AddNullToObject(object, key));
        return;
    }
    size_t len = strlen(text);
    while (len && text[len - 1] == '\n')
        text[--len] = '\0';
    kept(facts, cJSON_AddRawToObject(object, key, text));
    free(text);
}

/* ---- the rest ---------------------------------------------------------------------------------------- */

static void add_sections(struct facts *facts, cJSON *object, const struct catalog *catalog) {
    cJSON *list = kept(facts, cJSON_AddArrayToObject(object, "sections"));
    for (uint32_t i = 0; i < catalog->section_count; i++) {
        const struct section *section = &catalog->sections[i];
        cJSON *row = cJSON_CreateObject();
        add_text(facts, row, "kind", section->kind);
        add_u64(facts, row, "offset", section->offset);
        add_u64(facts, row, "size", section->size);
        add_item(facts, list, row);
    }
}

static void add_shards(struct facts *facts, cJSON *object, const struct catalog *catalog) {
    if (!catalog->sharded)
        return;
    cJSON *list = kept(facts, cJSON_AddArrayToObject(object, "shards"));
    for (uint32_t i = 0; i < catalog->part_count; i++)
        add_item(facts, list, cJSON_CreateString(catalog->parts[i].name));
}

static void add_verification(struct facts *facts, cJSON *object, const struct catalog *catalog) {
    cJSON *verification = kept(facts, cJSON_AddObjectToObject(object, "verification"));
    const struct digest_info *digest = &digest_table[catalog_digest(catalog)];
    add_text(facts, verification, "strength", digest->name);
    add_u64(facts, verification, "units", catalog->units.count);
    add_text(facts, verification, "protects_against", digest->against);
}

static void add_all(struct facts *facts, cJSON *info, const struct catalog *catalog) {
    add_text(facts, info, "path", facts->ckpt->opened.source->name);
    add_text(facts, info, "format", catalog->format);
    if (catalog->version)
        add_u64(facts, info, "version", catalog->version);
    else
        kept(facts, cJSON_AddNullToObject(info, "version"));
    add_u64(facts, info, "bytes", catalog->source_bytes);
    kept(facts, cJSON_AddBoolToObject(info, "enveloped", catalog->envelope != NULL));
    add_shards(facts, info, catalog);
    add_group(facts, info, "tensors", &catalog->groups[GROUP_TENSORS]);
    add_group(facts, info, "state", &catalog->groups[GROUP_STATE]);
    add_document(facts, info, "optimizer", "optimizer/optimizer.json");
    add_document(facts, info, "progress", "progress.json");
    add_document(facts, info, "config", "config.json");
    add_document(facts, info, "metadata", "metadata.json");
    add_document(facts, info, "envelope", "envelope/envelope.json");
    add_sections(facts, info, catalog);
    add_verification(facts, info, catalog);
}

int ckpt_info_json(struct ckpt *ckpt, char **ret_text, struct ckpt_err *err) {
    struct facts facts = {.ckpt = ckpt};
    cJSON *info = cJSON_CreateObject();
    add_all(&facts, info, &ckpt->opened.catalog);
    char *text = facts.failed ? NULL : cJSON_Print(info);
    cJSON_Delete(info);
    if (!text)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory for its facts", ckpt->opened.source->name);
    *ret_text = text;
    return 0;
}
