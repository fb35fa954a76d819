/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizer section: a document, and its moments as tensors. */
#include "format/oam.h"

#include "base/ovf.h"
#include "base/quote.h"
#include "base/rd.h"
#include "format/document.h"

#include <inttypes.h>
#include <string.h>

static struct oam_optimizer optimizer_fields(const uint8_t *bytes) {
    struct rd rd = rd_over(bytes, OAM_OPTIMIZER_BYTES);
    struct oam_optimizer optimizer;
    memcpy(optimizer.kind, rd_bytes(&rd, OAM_OPTIMIZER_KIND_BYTES), OAM_OPTIMIZER_KIND_BYTES);
    optimizer.learning_rate = rd_f32(&rd);
    optimizer.beta1 = rd_f32(&rd);
    optimizer.beta2 = rd_f32(&rd);
    optimizer.epsilon = rd_f32(&rd);
    optimizer.weight_decay = rd_f32(&rd);
    optimizer.step = rd_i64(&rd);
    optimizer.count = rd_u64(&rd);
    return optimizer;
}

static const char *const moment_names[] = {"first_moment", "second_moment"};

/* How many moments each kind keeps. */
static const struct optimizer_kind {
    const char *name;
    uint32_t moments;
} optimizer_kinds[] = {{"SGD", 2}, {"Adam", 2}, {"AdamW", 2}, {"Muon", 1}};

static const struct optimizer_kind *kind_of(const struct oam_optimizer *optimizer) {
    for (size_t i = 0; i < sizeof optimizer_kinds / sizeof *optimizer_kinds; i++)
        if (!strcmp(optimizer_kinds[i].name, optimizer->kind))
            return &optimizer_kinds[i];
    return NULL;
}

static int check_optimizer(const struct oam_optimizer *optimizer, uint64_t size, struct ckpt_err *err) {
    int rc = oam_text(optimizer->kind, sizeof optimizer->kind, "optimizer type", err);
    if (rc)
        return rc;
    const struct optimizer_kind *kind = kind_of(optimizer);
    struct quoted quoted;
    if (!kind)
        return err_verdict(err, CKPT_E_CORRUPT, "unknown optimizer type",
            "%s, known are SGD, Adam, AdamW, Muon", quote(&quoted, optimizer->kind, strlen(optimizer->kind)));
    uint64_t bytes, each = OAM_MOMENT_ITEM_BYTES * kind->moments;
    if (!ovf_mul(optimizer->count, each, &bytes) || !ovf_add(bytes, OAM_OPTIMIZER_BYTES, &bytes))
        return err_verdict(err, CKPT_E_CORRUPT, "optimizer size overflow",
            "%" PRIu32 " moments of %" PRIu64 " float32 pass 2^64 bytes", kind->moments, optimizer->count);
    if (bytes != size)
        return err_verdict(err, CKPT_E_CORRUPT, "optimizer payload size mismatch",
            "%s with %" PRIu64 " parameters takes %" PRIu64 " bytes, not %" PRIu64, kind->name,
            optimizer->count, bytes, size);
    return 0;
}

static int write_optimizer(struct arena *arena, const struct oam_optimizer *optimizer, uint32_t moments,
    struct document *document, struct ckpt_err *err) {
    cJSON *root = cJSON_CreateObject();
    document_text(&root, "kind", optimizer->kind);
    document_f32(&root, "learning_rate", optimizer->learning_rate);
    document_f32(&root, "beta1", optimizer->beta1);
    document_f32(&root, "beta2", optimizer->beta2);
    document_f32(&root, "epsilon", optimizer->epsilon);
    document_f32(&root, "weight_decay", optimizer->weight_decay);
    document_i64(&root, "step", optimizer->step);
    document_u64(&root, "parameters", optimizer->count);
    document_raw(
        &root, "moments", moments == 1 ? "[\"first_moment\"]" : "[\"first_moment\", \"second_moment\"]");
    return document_finish(arena, root, document, err);
}

static int list_moments(struct oam *oam, const struct oam_section *section, uint64_t count, uint32_t moments,
    struct group *group, struct ckpt_err *err) {
    struct arena *arena = &oam->catalog->arena;
    struct tensor *items = arena_alloc(arena, moments, sizeof *items);
    uint64_t *shape = arena_alloc(arena, 1, sizeof *shape);
    if (!items || !shape)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu32 " moments", moments);
    *shape = count;
    for (uint32_t i = 0; i < moments; i++)
        items[i] = (struct tensor){
            .name = moment_names[i],
            .name_len = (uint32_t)strlen(moment_names[i]),
            .shape = shape,
            .rank = 1,
            .dtype = DTYPE_F32,
            .encoding = ENCODING_DENSE,
            .elements = count,
            .size = OAM_MOMENT_ITEM_BYTES * count,
            .offset = section->offset + OAM_OPTIMIZER_BYTES + OAM_MOMENT_ITEM_BYTES * count * i,
        };
    group->items = items;
    group->count = moments;
    group->index = (struct range){oam->base + section->offset, OAM_OPTIMIZER_BYTES};
    return 0;
}

int oam_optimizer(struct oam *oam, const struct oam_section *section, struct document *document,
    struct group *group, struct ckpt_err *err) {
    uint8_t bytes[OAM_OPTIMIZER_BYTES];
    if (section->size < sizeof bytes)
        return err_verdict(err, CKPT_E_CORRUPT, "invalid optimizer header", "%" PRIu64 " bytes, at least %zu",
            section->size, sizeof bytes);
    int rc = source_read(oam->source, section->offset, bytes, sizeof bytes, err);
    if (rc)
        return rc;
    struct oam_optimizer optimizer = optimizer_fields(bytes);
    rc = check_optimizer(&optimizer, section->size, err);
    if (rc)
        return rc;
    uint32_t moments = kind_of(&optimizer)->moments;
    rc = list_moments(oam, section, optimizer.count, moments, group, err);
    if (!rc)
        rc = write_optimizer(&oam->catalog->arena, &optimizer, moments, document, err);
    document->from.len = OAM_OPTIMIZER_BYTES;
    return rc;
}
