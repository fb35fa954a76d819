/* SPDX-License-Identifier: Apache-2.0 */
/* The .oam reader: the section table first, then the insides of the sections that hold something to list. */
#include "format/oam.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool probe(const uint8_t *head, size_t head_len, uint64_t size) {
    (void)size;
    return head_len >= OAM_MAGIC_BYTES && !memcmp(head, "OAM", OAM_MAGIC_BYTES);
}

int oam_text(const void *field, size_t width, const char *what, struct ckpt_err *err) {
    char words[80];
    size_t len = strnlen(field, width);
    if (len == width) {
        snprintf(words, sizeof words, "%s is not NUL terminated", what);
        return err_verdict(err, CKPT_E_CORRUPT, words, "no NUL in its %zu bytes", width);
    }
    if (!text_is_utf8(field, len)) {
        snprintf(words, sizeof words, "%s is not UTF-8", what);
        return err_verdict(err, CKPT_E_CORRUPT, words, "malformed among its %zu bytes", len);
    }
    return 0;
}

/* ---- the insides ------------------------------------------------------------------------------------ */

/* What is read of a section, in the order of the reference reader. */
static const struct inside {
    enum oam_kind kind;
    int group;            /* enum group_kind, or -1 */
    const char *document; /* or NULL */
} insides[] = {
    {OAM_CONFIG, -1, "config.json"},
    {OAM_WEIGHTS, GROUP_TENSORS, NULL},
    {OAM_STATE, GROUP_STATE, NULL},
    {OAM_OPTIMIZER, GROUP_OPTIMIZER, "optimizer/optimizer.json"},
    {OAM_PROGRESS, -1, "progress.json"},
};
#define INSIDES (sizeof insides / sizeof *insides)

static int read_inside(struct oam *oam, const struct oam_section *section, struct document *document,
    struct group *group, struct ckpt_err *err) {
    switch ((enum oam_kind)section->kind) {
    case OAM_CONFIG:
        return oam_config(oam, section, document, err);
    case OAM_OPTIMIZER:
        return oam_optimizer(oam, section, document, group, err);
    case OAM_PROGRESS:
        return oam_progress(oam, section, document, err);
    default:
        return oam_tensors(oam, section, group, err);
    }
}

/*
 * A section's inside is malformed; err tells how. When its digest does not hold, that is damage, which costs
 * the section alone: 0. When it holds, the file was written so: the fault stands.
 */
static int blame(struct oam *oam, uint32_t index, struct ckpt_err *err) {
    struct ckpt_err answer = {0};
    int rc = oam->judge->unit(oam->judge->arg, &oam->catalog->units.list[index], UNIT_BLAME, &answer);
    if (rc == CKPT_E_CORRUPT || rc == CKPT_E_MISMATCH)
        return 0;
    if (rc == 0)
        return err_wrap(err, CKPT_E_CORRUPT, "%s", oam_kind_table[oam->sections[index].kind].unit);
    if (err)
        *err = answer;
    return rc;
}

static int open_section(struct oam *oam, uint32_t index, const struct inside *inside, struct ckpt_err *err) {
    struct catalog *catalog = oam->catalog;
    const struct oam_section *section = &oam->sections[index];
    struct document *document = NULL;
    struct group *group = inside->group < 0 ? NULL : &catalog->groups[inside->group];
    if (inside->document) {
        document = &catalog->documents[catalog->document_count++];
        *document =
            (struct document){.path = inside->document, .from = {oam->base + section->offset, section->size}};
    }
    if (group)
        group->present = true;
    int rc = read_inside(oam, section, document, group, err);
    if (rc != CKPT_E_CORRUPT)
        return rc ? err_wrap(err, rc, "%s", oam_kind_table[section->kind].unit) : 0;
    rc = blame(oam, index, err);
    if (!rc && group)
        group->damaged = true;
    return rc;
}

static int open_sections(struct oam *oam, struct ckpt_err *err) {
    for (size_t k = 0; k < INSIDES; k++)
        for (uint32_t i = 0; i < oam->header.section_count; i++) {
            if (oam->sections[i].kind != (uint32_t)insides[k].kind)
                continue;
            int rc = open_section(oam, i, &insides[k], err);
            if (rc)
                return rc;
        }
    return 0;
}

/* ---- the catalog ------------------------------------------------------------------------------------ */

static void add_section_blobs(struct oam *oam) {
    struct catalog *catalog = oam->catalog;
    for (uint32_t i = 0; i < oam->header.section_count; i++) {
        const struct oam_section *section = &oam->sections[i];
        catalog->blobs[catalog->blob_count++] = (struct blob){
            .path = oam_kind_table[section->kind].blob, .at = {oam->base + section->offset, section->size}};
        if (section->kind == OAM_OPTIMIZER)
            catalog->has_optimizer = true;
    }
}

static int start_catalog(struct oam *oam, struct ckpt_err *err) {
    struct catalog *catalog = oam->catalog;
    struct part *part = arena_alloc(&catalog->arena, 1, sizeof *part);
    catalog->documents = arena_alloc(&catalog->arena, INSIDES, sizeof *catalog->documents);
    /* one more for raw/arch_config.bin */
    catalog->blobs = arena_alloc(&catalog->arena, catalog->section_count + 1, sizeof *catalog->blobs);
    if (!part || !catalog->documents || !catalog->blobs)
        return err_set(err, CKPT_E_NOMEM, "no memory for the catalog");
    *part = (struct part){.base = oam->base, .size = oam->source->size};
    catalog->parts = part;
    catalog->part_count = 1;
    catalog->format = format_oam.name;
    catalog->version = oam->header.version;
    catalog->source_bytes = oam->source->size;
    catalog->exports = true;
    catalog->groups[GROUP_TENSORS].present = true; /* even without a weights section */
    add_section_blobs(oam);
    return 0;
}

static int parse(struct source **source, uint64_t base, const struct unit_judge *judge,
    struct catalog *catalog, struct ckpt_err *err) {
    struct oam oam = {.source = *source, .base = base, .judge = judge, .catalog = catalog};
    int rc = oam_table(&oam, err);
    if (!rc)
        rc = start_catalog(&oam, err);
    return rc ? rc : open_sections(&oam, err);
}

const struct format format_oam = {.name = "oam", .probe = probe, .suffix = ".oam", .parse = parse};
