/* SPDX-License-Identifier: Apache-2.0 */
/* The sections are laid out first, then written and hashed one after another, and the header last: over the
 * zeros that kept its place. */
#include "pack/oam.h"

#include "base/ovf.h"
#include "format/oam_layout.h"
#include "hash/fnv1a.h"
#include "pack/moments.h"
#include "pack/wr.h"

#include <inttypes.h>

#define SECTIONS 5 /* config, weights, state, optimizer, progress */

struct plan {
    struct oam_section sections[SECTIONS];
    uint32_t count;
    uint64_t total;
};

/* ---- where everything goes ------------------------------------------------------------------------------
 */

static bool tensors_bytes(const struct model_tensors *tensors, uint64_t *ret_bytes) {
    uint64_t bytes = OAM_INDEX_BYTES + OAM_ENTRY_BYTES * tensors->count;
    for (uint64_t i = 0; i < tensors->count; i++)
        if (!ovf_add(bytes, tensors->items[i].data.len, &bytes))
            return false;
    *ret_bytes = bytes;
    return true;
}

static bool optimizer_bytes(const struct model_optimizer *optimizer, uint64_t *ret_bytes) {
    *ret_bytes = OAM_OPTIMIZER_BYTES;
    return ovf_add(*ret_bytes, optimizer->moments[0].len, ret_bytes) &&
           ovf_add(*ret_bytes, optimizer->moments[1].len, ret_bytes);
}

/* A section of tensors takes whole pages, counted from where it starts; the others just their bytes. False
 * when the next section's place passes 2^64. */
static bool place(struct plan *plan, enum oam_kind kind, uint64_t size) {
    bool pages = kind == OAM_WEIGHTS || kind == OAM_STATE;
    uint64_t room = size;
    plan->sections[plan->count++] =
        (struct oam_section){.kind = (uint32_t)kind, .offset = plan->total, .size = size};
    if (pages && !ovf_add(size, OAM_PAGE_BYTES - 1, &room))
        return false;
    return ovf_add(plan->total, pages ? room / OAM_PAGE_BYTES * OAM_PAGE_BYTES : room, &plan->total);
}

static bool place_all(const struct model *model, struct plan *plan) {
    uint64_t size;
    if (!place(plan, OAM_CONFIG, OAM_CONFIG_BYTES + model->config.arch_config.len))
        return false;
    if (model->weights.count && !(tensors_bytes(&model->weights, &size) && place(plan, OAM_WEIGHTS, size)))
        return false;
    if (model->state.count && !(tensors_bytes(&model->state, &size) && place(plan, OAM_STATE, size)))
        return false;
    if (model->optimizer.present &&
        !(optimizer_bytes(&model->optimizer, &size) && place(plan, OAM_OPTIMIZER, size)))
        return false;
    return place(plan, OAM_PROGRESS, OAM_PROGRESS_BYTES) && plan->total <= INT64_MAX;
}

/* ---- what stands there ----------------------------------------------------------------------------------
 */

static int put_config(const struct model_config *config, struct out *out, struct ckpt_err *err) {
    uint8_t bytes[OAM_CONFIG_BYTES] = {0};
    struct wr wr = {bytes};
    wr_text(&wr, config->architecture.text, config->architecture.len, OAM_ARCHITECTURE_BYTES);
    wr_u32(&wr, config->config_version);
    wr_u32(&wr, config->flags);
    wr_u32(&wr, config->d_model);
    wr_u32(&wr, config->n_layers);
    wr_u32(&wr, config->d_vocab);
    wr_u32(&wr, (uint32_t)config->arch_config.len);
    wr_u8(&wr, config->weight_dtype);
    wr_u8(&wr, config->state_dtype);
    wr_u8(&wr, config->compute_dtype);
    int rc = out_put(out, bytes, sizeof bytes, err);
    if (!rc)
        rc = data_put(&config->arch_config, out, err);
    return rc;
}

static int put_entry(const struct tensor *tensor, uint64_t offset, struct out *out, struct ckpt_err *err) {
    uint8_t bytes[OAM_ENTRY_BYTES] = {0};
    struct wr wr = {bytes};
    wr_text(&wr, tensor->name, tensor->name_len, OAM_NAME_BYTES);
    wr_u64(&wr, offset);
    wr_u64(&wr, tensor->size);
    wr_u8(&wr, tensor->dtype);
    wr_u8(&wr, (uint8_t)tensor->rank);
    wr_u8(&wr, tensor->encoding);
    wr_u8(&wr, tensor->block);
    wr_skip(&wr, OAM_ENTRY_RESERVED_BYTES);
    for (uint32_t i = 0; i < tensor->rank; i++)
        wr_u64(&wr, tensor->shape[i]);
    return out_put(out, bytes, sizeof bytes, err);
}

static int put_index(const struct model_tensors *tensors, struct out *out, struct ckpt_err *err) {
    uint8_t bytes[OAM_INDEX_BYTES] = {0};
    struct wr wr = {bytes};
    uint64_t offset = 0;
    wr_u32(&wr, (uint32_t)tensors->count);
    int rc = out_put(out, bytes, sizeof bytes, err);
    for (uint64_t i = 0; !rc && i < tensors->count; i++) {
        rc = put_entry(&tensors->items[i].tensor, offset, out, err);
        offset += tensors->items[i].data.len;
    }
    return rc;
}

static int put_tensors(const struct model_tensors *tensors, struct out *out, struct ckpt_err *err) {
    int rc = put_index(tensors, out, err);
    for (uint64_t i = 0; !rc && i < tensors->count; i++)
        rc = model_tensor_put(&tensors->items[i], out, err);
    return rc;
}

static int put_optimizer(const struct model_optimizer *optimizer, struct out *out, struct ckpt_err *err) {
    uint8_t bytes[OAM_OPTIMIZER_BYTES] = {0};
    struct wr wr = {bytes};
    wr_text(&wr, optimizer->kind.text, optimizer->kind.len, OAM_OPTIMIZER_KIND_BYTES);
    wr_u32(&wr, optimizer->learning_rate);
    wr_u32(&wr, optimizer->beta1);
    wr_u32(&wr, optimizer->beta2);
    wr_u32(&wr, optimizer->epsilon);
    wr_u32(&wr, optimizer->weight_decay);
    wr_u64(&wr, (uint64_t)optimizer->step);
    wr_u64(&wr, optimizer->moments[0].len / OAM_MOMENT_ITEM_BYTES);
    int rc = out_put(out, bytes, sizeof bytes, err);
    for (uint32_t i = 0; !rc && i < moments_of(&optimizer->kind); i++)
        rc = data_put(&optimizer->moments[i], out, err);
    return rc;
}

static int put_progress(const struct model_progress *progress, struct out *out, struct ckpt_err *err) {
    uint8_t bytes[OAM_PROGRESS_BYTES] = {0};
    struct wr wr = {bytes};
    wr_u8(&wr, progress->phase);
    wr_skip(&wr, 3);
    wr_u64(&wr, (uint64_t)progress->step);
    wr_u64(&wr, progress->bytes_seen);
    wr_u64(&wr, progress->env_steps);
    wr_u32(&wr, progress->learning_rate);
    wr_u32(&wr, progress->best_metric);
    wr_u8(&wr, progress->lower_is_better);
    wr_skip(&wr, 3);
    wr_text(&wr, progress->metric_name.text, progress->metric_name.len, OAM_METRIC_NAME_BYTES);
    return out_put(out, bytes, sizeof bytes, err);
}

static int put_payload(const struct model *model, enum oam_kind kind, struct out *out, struct ckpt_err *err) {
    switch (kind) {
    case OAM_CONFIG:
        return put_config(&model->config, out, err);
    case OAM_WEIGHTS:
        return put_tensors(&model->weights, out, err);
    case OAM_STATE:
        return put_tensors(&model->state, out, err);
    case OAM_OPTIMIZER:
        return put_optimizer(&model->optimizer, out, err);
    default:
        return put_progress(&model->progress, out, err);
    }
}

static int put_section(
    const struct model *model, struct oam_section *section, struct out *out, struct ckpt_err *err) {
    int rc = out_zeros(out, section->offset - out_at(out), err);
    if (!rc)
        rc = out_digest_begin(out, err);
    if (!rc)
        rc = put_payload(model, (enum oam_kind)section->kind, out, err);
    return rc ? rc : out_digest_end(out, &section->checksum, err);
}

/* ---- the header -----------------------------------------------------------------------------------------
 */

static void put_section_header(struct wr *wr, const struct oam_section *section) {
    uint8_t *end = wr->at + OAM_SECTION_BYTES;
    wr_u32(wr, section->kind);
    wr_skip(wr, 8); /* no compression, no flags */
    wr_u64(wr, section->offset);
    wr_u64(wr, section->size);
    wr_skip(wr, 8); /* no compressed size */
    wr_u64(wr, section->checksum);
    wr->at = end;
}

static int put_header(const struct plan *plan, struct out *out, struct ckpt_err *err) {
    uint8_t bytes[OAM_HEADER_BYTES + SECTIONS * OAM_SECTION_BYTES] = {0};
    const size_t len = OAM_HEADER_BYTES + plan->count * (size_t)OAM_SECTION_BYTES;
    struct wr wr = {bytes};
    wr_u32(&wr, OAM_MAGIC);
    wr_u32(&wr, OAM_VERSION_MAX);
    wr_u32(&wr, plan->count);
    wr_skip(&wr, 4); /* no flags */
    wr_u64(&wr, plan->total);
    wr.at = bytes + OAM_HEADER_BYTES;
    for (uint32_t i = 0; i < plan->count; i++)
        put_section_header(&wr, &plan->sections[i]);
    wr.at = bytes + OAM_HEADER_CHECKSUM_OFFSET; /* taken while it is zero */
    wr_u64(&wr, fnv1a64(FNV1A64_START, bytes, len));
    return out_patch(out, 0, bytes, len, err);
}

/* ---- the file -------------------------------------------------------------------------------------------
 */

static int put_all(const struct model *model, struct plan *plan, struct out *out, struct ckpt_err *err) {
    int rc = 0;
    for (uint32_t i = 0; !rc && i < plan->count; i++)
        rc = put_section(model, &plan->sections[i], out, err);
    if (!rc)
        rc = out_zeros(out, plan->total - out_at(out), err);
    return rc ? rc : put_header(plan, out, err);
}

int oam_write(
    const char *path, struct model *model, const struct ckpt_write_options *options, struct ckpt_err *err) {
    struct plan plan = {.total = OAM_PAGE_BYTES};
    struct out *out;
    int rc = oam_check(model, err);
    if (!rc && !place_all(model, &plan))
        rc = err_set(err, CKPT_E_LIMIT, "the file would have more than 2^63 bytes");
    if (!rc)
        rc = out_begin(path, plan.total, options, &out, err);
    if (rc)
        return rc;
    rc = put_all(model, &plan, out, err);
    if (!rc)
        return out_commit(out, err);
    out_abandon(out);
    return rc;
}
