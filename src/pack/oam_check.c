/* SPDX-License-Identifier: Apache-2.0 */
/* What a writer refuses, in the order of the reference writer: a tensor is judged, then its name is looked
 * for among those before it. */
#include "pack/oam.h"

#include "base/ovf.h"
#include "base/quote.h"
#include "base/text.h"
#include "format/oam_layout.h"
#include "pack/moments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ----------------------------------------------------------------------------------------------
 */

static int check_utf8(const char *what, const char *text, size_t len, struct ckpt_err *err) {
    struct quoted quoted;
    return text_is_utf8(text, len)
               ? 0
               : err_set(err, CKPT_E_INVAL, "the %s %s is not UTF-8", what, quote(&quoted, text, len));
}

static bool has_nul(const char *text, size_t len) {
    return len && memchr(text, 0, len);
}

/* A text that has to fit in `width` bytes with its NUL. */
static int check_field(const char *what, const struct model_text *text, size_t width, struct ckpt_err *err) {
    char words[80];
    struct quoted quoted;
    if (text->len < width && !has_nul(text->text, text->len))
        return check_utf8(what, text->text, text->len, err);
    snprintf(words, sizeof words, ".oam %s must fit in %zu non-NUL bytes", what, width - 1);
    return err_verdict(err, CKPT_E_INVAL, words, "%s has %zu bytes%s", quote(&quoted, text->text, text->len),
        text->len, has_nul(text->text, text->len) ? " and a NUL among them" : "");
}

/* ---- one tensor -----------------------------------------------------------------------------------------
 */

#define INVALID "invalid .oam tensor: "

static const char *const fault_words[] = {
    [TENSOR_ELEMENTS] = INVALID "element count overflow",
    [TENSOR_DENSE_OVERFLOW] = INVALID "dense byte count overflow",
    [TENSOR_BLOCK] = INVALID "dense tensor has a nonzero block size",
    [TENSOR_QUANT_LAYOUT] = INVALID "invalid quantized tensor layout",
    [TENSOR_QUANT_OVERFLOW] = INVALID "quantized byte count overflow",
    [TENSOR_PARTIAL_BYTE] = INVALID "byte count does not match shape and encoding",
    [TENSOR_SIZE] = INVALID "byte count does not match shape and encoding",
};

static int fault_of(
    enum tensor_fault fault, const struct tensor *tensor, uint64_t bytes, struct ckpt_err *err) {
    struct quoted shape;
    quote_shape(&shape, tensor->shape, tensor->rank);
    if (fault == TENSOR_SIZE)
        return err_verdict(err, CKPT_E_INVAL, fault_words[fault],
            "%s %s, %s, takes %" PRIu64 " bytes, not %" PRIu64, dtype_table[tensor->dtype].name, shape.text,
            encoding_names[tensor->encoding], bytes, tensor->size);
    return err_verdict(err, CKPT_E_INVAL, fault_words[fault], "%s %s, %s, block size %u",
        dtype_table[tensor->dtype].name, shape.text, encoding_names[tensor->encoding],
        (unsigned)tensor->block);
}

static int check_shape(struct tensor *tensor, bool may_quantize, struct ckpt_err *err) {
    uint64_t bytes = 0;
    enum tensor_fault fault = tensor_check(tensor, &bytes);
    if (tensor->encoding != ENCODING_DENSE && !may_quantize && fault != TENSOR_ELEMENTS)
        fault = TENSOR_QUANT_LAYOUT;
    return fault == TENSOR_OK ? 0 : fault_of(fault, tensor, bytes, err);
}

static int check_name(const struct tensor *tensor, struct ckpt_err *err) {
    bool nul = has_nul(tensor->name, tensor->name_len);
    if (!tensor->name_len || tensor->name_len >= OAM_NAME_BYTES || nul || tensor->rank > OAM_RANK_MAX)
        return err_verdict(err, CKPT_E_INVAL, INVALID "invalid name or rank",
            "the name has %" PRIu32 " bytes, 1 to %d are allowed%s, and rank %" PRIu32 ", at most %d",
            tensor->name_len, OAM_NAME_BYTES - 1, nul ? " but no NUL" : "", tensor->rank, OAM_RANK_MAX);
    return check_utf8("tensor name", tensor->name, tensor->name_len, err);
}

static int check_tensor(struct model_tensor *item, bool may_quantize, struct ckpt_err *err) {
    struct tensor *tensor = &item->tensor;
    const char *path = item->data.path;
    struct quoted name;
    tensor->size = item->data.len;
    int rc = check_name(tensor, err);
    if (!rc && tensor->dtype >= DTYPE_OAM_COUNT)
        rc = err_set(err, CKPT_E_INVAL, INVALID ".oam has no type %s", dtype_table[tensor->dtype].name);
    if (!rc)
        rc = check_shape(tensor, may_quantize, err);
    return rc ? err_wrap(err, rc, "tensor %s%s%s", quote(&name, tensor->name, tensor->name_len),
                    path ? ", " : "", path ? path : "")
              : 0;
}

/* ---- all of them ----------------------------------------------------------------------------------------
 */

static int name_order(const void *a, const void *b) {
    const struct tensor *left = *(const struct tensor *const *)a, *right = *(const struct tensor *const *)b;
    size_t shorter = (size_t)ovf_min(left->name_len, right->name_len);
    int texts = memcmp(left->name, right->name, shorter);
    if (texts || left->name_len != right->name_len)
        return texts ? texts : left->name_len < right->name_len ? -1 : 1;
    return (left > right) - (left < right);
}

static bool same_name(const struct tensor *a, const struct tensor *b) {
    return a->name_len == b->name_len && !memcmp(a->name, b->name, a->name_len);
}

/* The first one whose name an earlier one has; NULL when there is none. */
static const struct tensor *first_repeat(const struct tensor **names, uint64_t count) {
    const struct tensor *first = NULL;
    qsort(names, count, sizeof *names, name_order);
    for (uint64_t i = 1; i < count; i++)
        if (same_name(names[i - 1], names[i]) && (!first || names[i] < first))
            first = names[i];
    return first;
}

static int check_repeats(const struct model_tensors *tensors, uint64_t count, struct ckpt_err *err) {
    const struct tensor **names = reallocarray(NULL, ovf_max(count, 1), sizeof *names);
    if (!names)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " names", count);
    for (uint64_t i = 0; i < count; i++)
        names[i] = &tensors->items[i].tensor;
    const struct tensor *repeat = first_repeat(names, count);
    free(names);
    if (!repeat)
        return 0;
    struct quoted name;
    return err_verdict(err, CKPT_E_INVAL, "duplicate .oam tensor name", "%s is there before",
        quote(&name, repeat->name, repeat->name_len));
}

static int check_tensors(struct model_tensors *tensors, bool may_quantize, struct ckpt_err *err) {
    int rc = 0;
    uint64_t good = 0;
    for (; good < tensors->count; good++) {
        rc = check_tensor(&tensors->items[good], may_quantize, err);
        if (rc)
            break;
    }
    int repeats = check_repeats(tensors, good, err);
    if (repeats || rc)
        return repeats ? repeats : rc;
    if (tensors->count > UINT32_MAX)
        return err_set(err, CKPT_E_LIMIT, "%" PRIu64 " tensors, an .oam section has at most %" PRIu32,
            tensors->count, UINT32_MAX);
    return 0;
}

/* ---- the optimizer --------------------------------------------------------------------------------------
 */

static int check_moments(const struct model_optimizer *optimizer, uint32_t moments, struct ckpt_err *err) {
    uint64_t first = optimizer->moments[0].len, second = optimizer->moments[1].len;
    if (moments == 1 && second)
        return err_verdict(
            err, CKPT_E_INVAL, "Muon .oam state has a second moment", "of %" PRIu64 " bytes", second);
    if (moments == 2 && first != second)
        return err_verdict(err, CKPT_E_INVAL, ".oam optimizer moment lengths differ",
            "%" PRIu64 " and %" PRIu64 " bytes", first, second);
    if (first % OAM_MOMENT_ITEM_BYTES)
        return err_set(err, CKPT_E_INVAL,
            "the optimizer's moments have %" PRIu64 " bytes, which are no whole number of float32", first);
    return 0;
}

static int check_optimizer(const struct model_optimizer *optimizer, struct ckpt_err *err) {
    if (!optimizer->present)
        return 0;
    const struct model_text *kind = &optimizer->kind;
    uint32_t moments = moments_of(kind);
    struct quoted quoted;
    if (!moments)
        return err_verdict(err, CKPT_E_INVAL, "unknown .oam optimizer type",
            "%s, known are SGD, Adam, AdamW and Muon", quote(&quoted, kind->text, kind->len));
    return check_moments(optimizer, moments, err);
}

/* ---- the model ------------------------------------------------------------------------------------------
 */

int oam_check_config(const struct model_config *config, struct ckpt_err *err) {
    const uint8_t dtypes[] = {config->weight_dtype, config->state_dtype, config->compute_dtype};
    int rc = check_field("architecture", &config->architecture, OAM_ARCHITECTURE_BYTES, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof dtypes; i++)
        if (dtypes[i] >= DTYPE_OAM_COUNT)
            return err_set(err, CKPT_E_INVAL, "config: .oam has no type %s", dtype_table[dtypes[i]].name);
    if (config->arch_config.len > UINT32_MAX)
        return err_set(err, CKPT_E_LIMIT, "an architecture config of %" PRIu64 " bytes, at most %" PRIu32,
            config->arch_config.len, UINT32_MAX);
    return 0;
}

int oam_check_progress(const struct model_progress *progress, struct ckpt_err *err) {
    return check_field("metric name", &progress->metric_name, OAM_METRIC_NAME_BYTES, err);
}

int oam_check(struct model *model, struct ckpt_err *err) {
    int rc = oam_check_config(&model->config, err);
    if (!rc)
        rc = oam_check_progress(&model->progress, err);
    if (!rc)
        rc = check_tensors(&model->weights, true, err);
    if (!rc)
        rc = check_tensors(&model->state, false, err);
    return rc ? rc : check_optimizer(&model->optimizer, err);
}
