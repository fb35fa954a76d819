/* SPDX-License-Identifier: Apache-2.0 */
/* From an open checkpoint to a model: what its reader found, not its file once more. */
#include "pack/document.h"

#include <string.h>

struct opened {
    const struct catalog *catalog;
    struct source *source;
    struct model *model;
};

static struct data data_at(const struct opened *opened, struct range at) {
    return (struct data){.len = at.len, .source = opened->source, .off = at.off};
}

static const struct document *find_document(const struct catalog *catalog, const char *path) {
    for (uint32_t i = 0; i < catalog->document_count; i++)
        if (!strcmp(catalog->documents[i].path, path))
            return catalog->documents[i].json ? &catalog->documents[i] : NULL;
    return NULL;
}

static int missing(const char *path, struct ckpt_err *err) {
    return err_set(err, CKPT_E_CORRUPT, "%s could not be parsed", path);
}

/* ---- documents ------------------------------------------------------------------------------------------
 */

static int take_config(const struct opened *opened, struct ckpt_err *err) {
    static const char path[] = "config.json";
    const struct document *document = find_document(opened->catalog, path);
    struct document_arch arch;
    if (!document)
        return missing(path, err);
    int rc = document_config(opened->model, document->json, document->json_len, &arch, err);
    if (rc)
        return err_wrap(err, rc, "%s", path);
    for (uint32_t i = 0; i < opened->catalog->blob_count; i++)
        if (!strcmp(opened->catalog->blobs[i].path, "raw/arch_config.bin"))
            opened->model->config.arch_config = data_at(opened, opened->catalog->blobs[i].at);
    return 0;
}

static int take_progress(const struct opened *opened, struct ckpt_err *err) {
    static const char path[] = "progress.json";
    const struct document *document = find_document(opened->catalog, path);
    if (!document)
        return missing(path, err);
    const struct data section = data_at(opened, document->from);
    int rc = document_progress(opened->model, document->json, document->json_len, &section, err);
    return rc ? err_wrap(err, rc, "%s", path) : 0;
}

static int take_optimizer(const struct opened *opened, struct ckpt_err *err) {
    static const char path[] = "optimizer/optimizer.json";
    const struct group *group = &opened->catalog->groups[GROUP_OPTIMIZER];
    const struct document *document = find_document(opened->catalog, path);
    struct document_number parameters;
    if (!opened->catalog->has_optimizer)
        return 0;
    if (!document || group->damaged || group->count > MODEL_MOMENTS)
        return missing(path, err);
    const struct data section = data_at(opened, document->from);
    int rc =
        document_optimizer(opened->model, document->json, document->json_len, &section, &parameters, err);
    if (rc)
        return err_wrap(err, rc, "%s", path);
    for (uint64_t i = 0; i < group->count; i++)
        opened->model->optimizer.moments[i] =
            data_at(opened, tensor_range(opened->catalog, &group->items[i]));
    return 0;
}

/* ---- tensors --------------------------------------------------------------------------------------------
 */

static int take_group(
    const struct opened *opened, enum group_kind kind, struct model_tensors *tensors, struct ckpt_err *err) {
    const struct group *group = &opened->catalog->groups[kind];
    if (group->damaged)
        return err_set(err, CKPT_E_CORRUPT, "the index of its tensors could not be parsed");
    struct model_tensor *items = arena_alloc(&opened->model->arena, group->count + 1, sizeof *items);
    if (!items)
        return err_set(err, CKPT_E_NOMEM, "no memory for %llu tensors", (unsigned long long)group->count);
    for (uint64_t i = 0; i < group->count; i++)
        items[i] = (struct model_tensor){.tensor = group->items[i],
            .data = data_at(opened, tensor_range(opened->catalog, &group->items[i]))};
    *tensors = (struct model_tensors){items, group->count};
    return 0;
}

int model_of_catalog(
    const struct catalog *catalog, struct source *source, struct model *model, struct ckpt_err *err) {
    const struct opened opened = {catalog, source, model};
    if (strcmp(catalog->format, "oam") != 0)
        return err_set(
            err, CKPT_E_INVAL, "it is %s, and only an .oam has all that is needed", catalog->format);
    int rc = take_config(&opened, err);
    if (!rc)
        rc = take_progress(&opened, err);
    if (!rc)
        rc = take_group(&opened, GROUP_TENSORS, &model->weights, err);
    if (!rc)
        rc = take_group(&opened, GROUP_STATE, &model->state, err);
    return rc ? rc : take_optimizer(&opened, err);
}
