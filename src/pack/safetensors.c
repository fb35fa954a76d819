/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/safetensors.h"

#include "base/ovf.h"
#include "base/quote.h"
#include "base/text.h"
#include "catalog/outline.h"
#include "format/safetensors_layout.h"
#include "pack/metadata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the format does not hold --------------------------------------------------------------------- */

static int check_tensor(const struct tensor *tensor, struct ckpt_err *err) {
    struct quoted name;
    quote(&name, tensor->name, tensor->name_len);
    const char *refused = outline_refuses(tensor);
    if (refused)
        return err_set(err, CKPT_E_UNSUPPORTED, "tensor %s: %s", name.text, refused);
    if (tensor->rank > SAFETENSORS_RANK_MAX)
        return err_set(err, CKPT_E_UNSUPPORTED, "tensor %s: rank %" PRIu32 ", at most %d are read", name.text,
            tensor->rank, SAFETENSORS_RANK_MAX);
    if (!text_is_utf8(tensor->name, tensor->name_len))
        return err_set(err, CKPT_E_INVAL, "tensor %s: the name is not UTF-8", name.text);
    return 0;
}

static int by_name(const void *left, const void *right) {
    const struct tensor *a = *(const struct tensor *const *)left, *b = *(const struct tensor *const *)right;
    int order = memcmp(a->name, b->name, ovf_min(a->name_len, b->name_len));
    return order ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static int check_repeats(const struct tensor *items, uint64_t count, struct ckpt_err *err) {
    const struct tensor **order = reallocarray(NULL, count + 1, sizeof *order);
    if (!order)
        return err_set(err, CKPT_E_NOMEM, "no memory for the names of %" PRIu64 " tensors", count);
    for (uint64_t i = 0; i < count; i++)
        order[i] = &items[i];
    qsort(order, count, sizeof *order, by_name);
    int rc = 0;
    struct quoted name;
    for (uint64_t i = 1; !rc && i < count; i++)
        if (!by_name(&order[i - 1], &order[i]))
            rc = err_set(err, CKPT_E_INVAL, "tensor %s is there twice",
                quote(&name, order[i]->name, order[i]->name_len));
    free(order);
    return rc;
}

static int check(const struct safetensors_content *content, struct ckpt_err *err) {
    int rc = pairs_check(content->metadata, content->metadata_count, err);
    for (uint64_t i = 0; !rc && i < content->count; i++)
        rc = check_tensor(&content->items[i], err);
    return rc ? rc : check_repeats(content->items, content->count, err);
}

static int check_header(const struct outline *outline, struct ckpt_err *err) {
    uint64_t length = outline_header_bytes(outline) - SAFETENSORS_LENGTH_BYTES;
    if (length > SAFETENSORS_HEADER_MAX)
        return err_set(err, CKPT_E_LIMIT,
            "the header of %" PRIu64 " tensors takes %" PRIu64 " bytes, the format allows %" PRIu64,
            outline->count, length, SAFETENSORS_HEADER_MAX);
    return 0;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static int put_header(struct out *out, const struct rows *header, struct ckpt_err *err) {
    struct buf row = {0};
    int rc = 0;
    for (uint64_t i = 0; !rc && i < header->count; i++) {
        buf_clear(&row);
        header->render(header, i, &row);
        rc = row.failed ? err_set(err, CKPT_E_NOMEM, "no memory for a row of the header")
                        : out_put(out, row.bytes, row.len, err);
    }
    buf_free(&row);
    return rc;
}

static int put_data(struct out *out, const struct outline *outline, const struct safetensors_content *content,
    struct ckpt_err *err) {
    uint64_t start = out_at(out);
    for (uint64_t i = 0; i < outline->count; i++) {
        const struct tensor *tensor = &outline->items[outline->order[i]];
        struct quoted name;
        quote(&name, tensor->name, tensor->name_len);
        int rc = content->put(content->arg, tensor, out, err);
        if (rc)
            return err_wrap(err, rc, "tensor %s", name.text);
        if (out_at(out) - start != outline->data[i + 1])
            return err_set(err, CKPT_E_INVAL, "tensor %s: its data ends at %" PRIu64 ", not at %" PRIu64,
                name.text, out_at(out) - start, outline->data[i + 1]);
    }
    return 0;
}

static int put_file(const char *path, const struct outline *outline,
    const struct safetensors_content *content, const struct ckpt_write_options *options,
    struct ckpt_err *err) {
    struct out *out;
    int rc = out_begin(path, outline_size(outline), options, &out, err);
    if (rc)
        return rc;
    rc = put_header(out, &outline->header, err);
    if (!rc)
        rc = put_data(out, outline, content, err);
    if (!rc)
        return out_commit(out, err);
    out_abandon(out);
    return rc;
}

int safetensors_write(const char *path, const struct safetensors_content *content,
    const struct ckpt_write_options *options, struct ckpt_err *err) {
    struct outline outline = {0};
    struct buf metadata = {0};
    int rc = check(content, err);
    if (rc)
        return rc;
    pairs_put(&metadata, content->metadata, content->metadata_count);
    rc = metadata.failed ? err_set(err, CKPT_E_NOMEM, "no memory for the metadata")
                         : outline_make(&outline, content->items, content->count,
                               content->metadata_count ? metadata.bytes : NULL, metadata.len, err);
    if (!rc)
        rc = check_header(&outline, err);
    if (!rc)
        rc = put_file(path, &outline, content, options, err);
    outline_free(&outline);
    buf_free(&metadata);
    return rc;
}
