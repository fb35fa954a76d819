/* SPDX-License-Identifier: Apache-2.0 */
/* Anything to an .oam. */
#include "base/quote.h"
#include "base/text.h"
#include "format/oam_layout.h"
#include "pack/convert_order.h"
#include "pack/convert_own.h"
#include "pack/document.h"
#include "pack/oam.h"

#include <inttypes.h>
#include <string.h>

/* ---- weights ------------------------------------------------------------------------------------------- */

/* Tells why .oam cannot hold the tensor; false: it can. */
static bool refuse_tensor(struct convert *convert, const struct tensor *tensor) {
    struct quoted quoted;
    const char *name = quote(&quoted, tensor->name, tensor->name_len);
    if (tensor->dtype >= DTYPE_OAM_COUNT)
        convert_refuse(convert, "tensor %s: .oam has no type %s", name, dtype_table[tensor->dtype].name);
    else if (!tensor->name_len)
        convert_refuse(convert, "tensor %s: in .oam a name is not empty", name);
    else if (tensor->name_len >= OAM_NAME_BYTES)
        convert_refuse(convert, "tensor %s: its name has %" PRIu32 " bytes, .oam holds %d", name,
            tensor->name_len, OAM_NAME_BYTES - 1);
    else if (memchr(tensor->name, 0, tensor->name_len))
        convert_refuse(convert, "tensor %s: its name holds a NUL", name);
    else if (tensor->rank > OAM_RANK_MAX)
        convert_refuse(
            convert, "tensor %s: it has rank %" PRIu32 ", .oam holds %d", name, tensor->rank, OAM_RANK_MAX);
    else
        return false;
    return true;
}

static int hold_tensors(struct convert *convert, struct model *model, struct ckpt_err *err) {
    const struct group *group = &convert->catalog->groups[GROUP_TENSORS];
    struct model_tensor *items = arena_alloc(&model->arena, group->count + 1, sizeof *items);
    if (!items)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " tensors", group->count);
    model->weights.items = items;
    for (uint64_t i = 0; i < group->count; i++) {
        const struct tensor *tensor = &group->items[i];
        if (refuse_tensor(convert, tensor))
            continue;
        struct range at = tensor_range(convert->catalog, tensor);
        items[model->weights.count++] = (struct model_tensor){
            .tensor = *tensor, .data = {.len = at.len, .source = convert->source, .off = at.off}};
    }
    return 0;
}

/* ---- config and progress ---------------------------------------------------------------------------------
 */

/* The type that most bytes of the weights have. */
static uint8_t weight_dtype(const struct model *model) {
    uint64_t bytes[DTYPE_OAM_COUNT] = {0}; /* the source is below 2^63 */
    uint8_t most = DTYPE_F32;
    for (uint64_t i = 0; i < model->weights.count; i++)
        bytes[model->weights.items[i].tensor.dtype] += model->weights.items[i].data.len;
    for (uint8_t dtype = 0; dtype < DTYPE_OAM_COUNT; dtype++)
        if (bytes[dtype] > bytes[most])
            most = dtype;
    return most;
}

static void take_defaults(struct model *model) {
    model->config = (struct model_config){
        .architecture = {"", 0},
        .config_version = 1,
        .weight_dtype = weight_dtype(model),
        .state_dtype = DTYPE_F32,
        .compute_dtype = DTYPE_F32,
    };
    model->progress = (struct model_progress){.metric_name = {"", 0}};
}

static int take_arch_config(struct model *model, const struct ckpt_pair *pair,
    const struct document_number *bytes, struct ckpt_err *err) {
    uint64_t len = pair ? pair->value_len / 2 : 0;
    if (bytes->told && bytes->value != len)
        return err_set(err, CKPT_E_INVAL,
            "it says that the architecture config has %" PRIu64 " bytes, " KEY_ARCH_CONFIG " has %" PRIu64,
            bytes->value, len);
    if (!len)
        return 0;
    uint8_t *arch = arena_alloc(&model->arena, 1, (size_t)len);
    if (!arch)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " bytes", len);
    if (pair->value_len != 2 * len || !text_unhex(pair->value, (size_t)len, arch))
        return err_set(err, CKPT_E_INVAL, KEY_ARCH_CONFIG " is not %" PRIu64 " hexadecimal digits", 2 * len);
    model->config.arch_config = (struct data){.len = len, .memory = arch};
    return 0;
}

static int take_config(struct model *model, const struct metadata *metadata, struct ckpt_err *err) {
    const struct ckpt_pair *pair = metadata_find(metadata, KEY_CONFIG);
    struct document_arch arch;
    int rc = document_config(model, pair->value, pair->value_len, &arch, err);
    if (!rc)
        rc = oam_check_config(&model->config, err);
    return rc ? rc : take_arch_config(model, metadata_find(metadata, KEY_ARCH_CONFIG), &arch.bytes, err);
}

static int take_progress(struct model *model, const struct metadata *metadata, struct ckpt_err *err) {
    const struct ckpt_pair *pair = metadata_find(metadata, KEY_PROGRESS);
    int rc = document_progress(model, pair->value, pair->value_len, NULL, err);
    return rc ? rc : oam_check_progress(&model->progress, err);
}

static int take_order(struct model *model, const struct metadata *metadata, struct ckpt_err *err) {
    const struct ckpt_pair *pair = metadata_find(metadata, KEY_ORDER);
    return convert_order(&model->weights, pair->value, pair->value_len, err);
}

/* One that is not as it was written, or that no .oam can hold, is told like one that is not known; the
 * defaults stay then. */
static int take_key(struct convert *convert, struct model *model, const struct metadata *metadata,
    const char *key, struct ckpt_err *err) {
    static const struct {
        const char *key;
        int (*take)(struct model *model, const struct metadata *metadata, struct ckpt_err *err);
    } keys[] = {{KEY_CONFIG, take_config}, {KEY_PROGRESS, take_progress}, {KEY_ORDER, take_order}};
    struct ckpt_err own;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i].key, key) != 0)
            continue;
        const struct model_config config = model->config;
        const struct model_progress progress = model->progress;
        int rc = keys[i].take(model, metadata, &own);
        if (!rc)
            return 0;
        if (rc != CKPT_E_INVAL)
            return err_set(err, rc, "metadata '%s': %s", key, own.msg);
        model->config = config;
        model->progress = progress;
        convert_refuse(convert, "metadata '%s': %s", key, own.msg);
    }
    return 0;
}

static bool known(const struct metadata *metadata, const struct ckpt_pair *pair) {
    if (strlen(pair->key) != pair->key_len)
        return false;
    if (!strcmp(pair->key, KEY_ARCH_CONFIG)) /* goes with the config, or nowhere */
        return metadata_find(metadata, KEY_CONFIG) != NULL;
    return !strcmp(pair->key, KEY_FORMAT) || !strcmp(pair->key, KEY_CONFIG) ||
           !strcmp(pair->key, KEY_PROGRESS) || !strcmp(pair->key, KEY_ORDER);
}

static void refuse_key(struct convert *convert, const struct ckpt_pair *pair) {
    struct quoted key;
    convert_refuse(convert, "metadata %s: .oam has no place for it", quote(&key, pair->key, pair->key_len));
}

static int take_metadata(
    struct convert *convert, struct model *model, const struct metadata *metadata, struct ckpt_err *err) {
    int rc = 0;
    for (size_t i = 0; !rc && i < metadata->count; i++) {
        const struct ckpt_pair *pair = &metadata->pairs[i];
        if (known(metadata, pair))
            rc = take_key(convert, model, metadata, pair->key, err);
        else
            refuse_key(convert, pair);
    }
    return rc;
}

/* ---- the conversion ------------------------------------------------------------------------------------ */

static int hold_safetensors(struct convert *convert, struct model *model, struct ckpt_err *err) {
    struct metadata metadata = {0}, others = {0};
    int rc = hold_tensors(convert, model, err);
    if (!rc)
        take_defaults(model);
    if (!rc)
        rc = convert_gather(convert, &metadata, &others, err);
    if (!rc)
        rc = take_metadata(convert, model, &metadata, err);
    for (size_t i = 0; !rc && i < others.count; i++)
        refuse_key(convert, &others.pairs[i]);
    metadata_free(&metadata);
    metadata_free(&others);
    return rc;
}

static int hold(struct convert *convert, struct model *model, struct ckpt_err *err) {
    int rc = convert_is_oam(convert->catalog)
                 ? model_of_catalog(convert->catalog, convert->source, model, err)
                 : hold_safetensors(convert, model, err);
    if (rc)
        return rc;
    convert_refuse_sections(convert);
    return convert_judge(convert, ".oam", err);
}

int convert_to_oam(struct convert *convert, const char *path, struct ckpt_err *err) {
    struct model model = {0};
    int rc = hold(convert, &model, err);
    if (!rc)
        rc = oam_write(path, &model, convert->options, err);
    model_free(&model);
    return rc;
}
