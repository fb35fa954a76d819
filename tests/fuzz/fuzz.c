/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "base/json.h"
#include "base/ovf.h"
#include "base/text.h"
#include "hash/hash.h"
#include "verify/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_broken(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

void fuzz_error_holds(int rc, const struct ckpt_err *err) {
    if (!rc)
        return;
    HOLDS(rc < 0 && rc == err->code);
    HOLDS(err->msg[0] && err->words[0]);
    for (const unsigned char *at = (const unsigned char *)err->msg; *at; at++)
        if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0))
            fuzz_broken(__FILE__, __LINE__, err->msg);
}

/* ---- the judge --------------------------------------------------------------------------------------- */

static int judge_unit(void *arg, const struct unit *unit, enum unit_when when, struct ckpt_err *err) {
    const struct fuzz_court *court = arg;
    uint8_t found[32];
    if (court->strict != (when == UNIT_IN_ORDER))
        return 0;
    return pass_unit(court->file, unit, NULL, found, NULL, NULL, err);
}

static int judge_header(const struct fuzz_court *court, struct ckpt_err *err) {
    struct envelope *envelope = court->catalog->envelope;
    int rc = hash_bytes(HASH_SHA256, envelope->header, envelope->header_bytes, envelope->manifest, err);
    if (!rc && court->strict && envelope->stray)
        return err_set(err, CKPT_E_MISMATCH, "layout");
    return rc;
}

/* One unit after another: threads would make runs differ. */
static int judge_table(void *arg, const struct unit_table *table, struct ckpt_err *err) {
    struct fuzz_court *court = arg;
    int rc = judge_header(court, err);
    for (uint64_t i = 0; court->strict && !rc && i < table->count; i++) {
        const struct unit unit = unit_get(table, i);
        rc = judge_unit(court, &unit, UNIT_IN_ORDER, err);
    }
    return rc;
}

struct unit_judge fuzz_judge(struct fuzz_court *court) {
    return (struct unit_judge){.unit = judge_unit, .table = judge_table, .arg = court};
}

/* ---- what must hold ---------------------------------------------------------------------------------- */

static void range_holds(const struct catalog *catalog, struct range range) {
    HOLDS(!range.len || ovf_inside(range.off, range.len, catalog->source_bytes));
}

static void tensor_holds(const struct catalog *catalog, const struct tensor *tensor) {
    struct tensor again = *tensor;
    uint64_t bytes;
    HOLDS(tensor->dtype < DTYPE_COUNT && tensor->encoding < ENCODING_COUNT);
    HOLDS(tensor_check(&again, &bytes) == TENSOR_OK);
    HOLDS(again.elements == tensor->elements && bytes == tensor->size);
    HOLDS(text_is_utf8(tensor->name, tensor->name_len) && !tensor->name[tensor->name_len]);
    HOLDS(tensor->part < catalog->part_count);
    const struct part *part = &catalog->parts[tensor->part];
    HOLDS(ovf_inside(tensor->offset, tensor->size, part->size));
    HOLDS(ovf_inside(part->base, part->size, catalog->source_bytes));
}

static void places_hold(const struct catalog *catalog, const struct group *group) {
    struct range *ranges = calloc(group->count + 1, sizeof *ranges);
    uint64_t a, b;
    int rc;
    HOLDS(ranges);
    for (uint64_t i = 0; i < group->count; i++)
        ranges[i] = tensor_range(catalog, &group->items[i]);
    HOLDS(!ranges_overlap(ranges, group->count, &a, &b, &rc) && !rc);
    free(ranges);
}

static void group_holds(const struct catalog *catalog, const struct group *group) {
    HOLDS(!group->count || (group->present && !group->damaged));
    range_holds(catalog, group->index);
    for (uint64_t i = 0; i < group->count; i++)
        tensor_holds(catalog, &group->items[i]);
    places_hold(catalog, group);
}

static void document_holds(const struct catalog *catalog, const struct document *document) {
    HOLDS(document->path);
    range_holds(catalog, document->from);
    if (document->json)
        HOLDS((json_valid(document->json, document->json_len) ||
                  json_python(document->json, document->json_len)) &&
              !document->json[document->json_len]);
}

static void units_hold(const struct catalog *catalog, const struct unit_table *table) {
    for (uint64_t i = 0; i < table->count; i++)
        range_holds(catalog, unit_get(table, i).at);
}

void fuzz_catalog_holds(const struct catalog *catalog) {
    HOLDS(catalog->format);
    range_holds(catalog, catalog->head);
    units_hold(catalog, &catalog->units);
    units_hold(catalog, &catalog->inner);
    for (int i = 0; i < GROUP_COUNT; i++)
        group_holds(catalog, &catalog->groups[i]);
    for (uint32_t i = 0; i < catalog->document_count; i++)
        document_holds(catalog, &catalog->documents[i]);
    for (uint32_t i = 0; i < catalog->blob_count; i++) {
        range_holds(catalog, catalog->blobs[i].at);
        range_holds(catalog, catalog->blobs[i].from);
    }
}

/* ---- reading ----------------------------------------------------------------------------------------- */

int fuzz_parse(
    const struct format *format, const uint8_t *data, size_t size, bool strict, struct catalog *ret_catalog) {
    struct ckpt_err err = {0};
    struct source *file = fuzz_source(data, size), *source = fuzz_source(data, size);
    *ret_catalog = (struct catalog){0};
    struct fuzz_court court = {.file = file, .catalog = ret_catalog, .strict = strict};
    const struct unit_judge judge = fuzz_judge(&court);
    int rc = format ? format->parse(&source, 0, &judge, ret_catalog, &err)
                    : format_parse(&source, &judge, ret_catalog, &err);
    fuzz_error_holds(rc, &err);
    HOLDS(rc != CKPT_E_IO && rc != CKPT_E_CHANGED && rc != CKPT_E_INVAL && rc != CKPT_E_INTR);
    if (!rc) {
        HOLDS(ret_catalog->source_bytes == source->size);
        fuzz_catalog_holds(ret_catalog);
    }
    source_close(source);
    source_close(file);
    return rc;
}

/* Nothing is damaged where everything was hashed, and then the lazy reader sees the same. */
static void accepted_holds(const struct catalog *strict, const struct catalog *lazy) {
    HOLDS(!strict->lost && !lazy->lost);
    HOLDS(!strcmp(strict->format, lazy->format));
    HOLDS(strict->document_count == lazy->document_count && strict->blob_count == lazy->blob_count);
    HOLDS(strict->units.count == lazy->units.count && strict->inner.count == lazy->inner.count);
    for (int i = 0; i < GROUP_COUNT; i++) {
        HOLDS(!strict->groups[i].damaged && !lazy->groups[i].damaged);
        HOLDS(strict->groups[i].count == lazy->groups[i].count);
    }
    for (uint32_t i = 0; i < strict->document_count; i++)
        HOLDS(strict->documents[i].json && lazy->documents[i].json);
}

bool fuzz_format(const struct format *format, const uint8_t *data, size_t size) {
    struct catalog strict, lazy;
    int strictly = fuzz_parse(format, data, size, true, &strict);
    int lazily = fuzz_parse(format, data, size, false, &lazy);
    if (!strictly) {
        HOLDS(!lazily);
        accepted_holds(&strict, &lazy);
    }
    catalog_free(&strict);
    catalog_free(&lazy);
    return !strictly;
}
