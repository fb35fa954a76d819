/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A quantized tensor has all blocks' integers first and then all scales, and each block makes both at once.
 * So the scales wait in memory while the integers are written; those of a tensor so large that they do not
 * fit are computed once more, from the values.
 */
#include "pack/quantize.h"

#include "base/ovf.h"
#include "base/quote.h"
#include "pack/quantize_kernel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#ifndef PIECE_BLOCKS                    /* a test has smaller ones */
#define PIECE_BLOCKS 8192               /* 1 MiB of values */
#define KEPT_BLOCKS ((uint64_t)1 << 24) /* whose scales wait: 64 MiB, of 2 GiB of values */
#endif

struct work {
    const struct model_tensor *item;
    struct out *out;
    quantize_fn *run;
    size_t ints_bytes; /* of a block */
    uint64_t blocks, kept;
    uint8_t *values; /* of a piece */
    uint8_t *spare;  /* a piece's integers or scales that are not wanted */
    uint8_t *scales; /* of the blocks [0, kept) */
};

/* ---- pieces ---------------------------------------------------------------------------------------------
 */

/* The values of `count` blocks from number `first` on; after the last value come zeros. */
static int load(const struct work *work, uint64_t first, size_t count, struct ckpt_err *err) {
    uint64_t at = first * QUANTIZE_BLOCK_BYTES;
    size_t want = count * QUANTIZE_BLOCK_BYTES;
    size_t have = (size_t)ovf_min(want, 4 * work->item->tensor.elements - at);
    memset(work->values + have, 0, want - have);
    return data_read(&work->item->data, at, work->values, have, err);
}

static int put_ints(struct work *work, uint64_t first, size_t count, struct ckpt_err *err) {
    uint8_t *room, *scales = first < work->kept ? work->scales + QUANTIZE_SCALE_BYTES * first : work->spare;
    int rc = load(work, first, count, err);
    if (!rc)
        rc = out_room(work->out, count * work->ints_bytes, &room, err);
    if (rc)
        return rc;
    work->run(work->values, count, room, scales);
    return out_put_room(work->out, count * work->ints_bytes, err);
}

static int put_scales_again(struct work *work, uint64_t first, size_t count, struct ckpt_err *err) {
    uint8_t *room;
    int rc = load(work, first, count, err);
    if (!rc)
        rc = out_room(work->out, count * QUANTIZE_SCALE_BYTES, &room, err);
    if (rc)
        return rc;
    work->run(work->values, count, work->spare, room);
    return out_put_room(work->out, count * QUANTIZE_SCALE_BYTES, err);
}

static int put_kept_scales(struct work *work, struct ckpt_err *err) {
    return out_put(work->out, work->scales, (size_t)work->kept * QUANTIZE_SCALE_BYTES, err);
}

static int each_piece(struct work *work, uint64_t from,
    int (*put)(struct work *work, uint64_t first, size_t count, struct ckpt_err *err), struct ckpt_err *err) {
    int rc = 0;
    for (uint64_t at = from, count; !rc && at < work->blocks; at += count) {
        count = ovf_min(PIECE_BLOCKS, work->blocks - at);
        rc = put(work, at, (size_t)count, err);
    }
    return rc;
}

/* ---- one tensor -----------------------------------------------------------------------------------------
 */

static int put_work(struct work *work, struct ckpt_err *err) {
    int rc = each_piece(work, 0, put_ints, err);
    if (!rc)
        rc = put_kept_scales(work, err);
    return rc ? rc : each_piece(work, work->kept, put_scales_again, err);
}

static int put_quantized(const struct model_tensor *item, struct out *out, struct ckpt_err *err) {
    const struct quantize_kernel *kernel = quantize_kernel();
    bool q4 = item->tensor.encoding == ENCODING_Q4;
    struct work work = {.item = item,
        .out = out,
        .run = q4 ? kernel->q4 : kernel->q8,
        .ints_bytes = q4 ? QUANTIZE_BLOCK / 2 : QUANTIZE_BLOCK,
        .blocks = (item->tensor.elements - 1) / QUANTIZE_BLOCK + 1};
    work.kept = ovf_min(work.blocks, KEPT_BLOCKS); /* a multiple of PIECE_BLOCKS, or all */
    work.values = malloc((size_t)PIECE_BLOCKS * QUANTIZE_BLOCK_BYTES);
    work.spare = malloc((size_t)PIECE_BLOCKS * QUANTIZE_BLOCK);
    work.scales = malloc((size_t)work.kept * QUANTIZE_SCALE_BYTES);
    int rc = work.values && work.spare && work.scales
                 ? put_work(&work, err)
                 : err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " scales", work.kept);
    free(work.values);
    free(work.spare);
    free(work.scales);
    struct quoted name;
    return rc ? err_wrap(err, rc, "tensor %s", quote(&name, item->tensor.name, item->tensor.name_len)) : 0;
}

/* ---- the model ------------------------------------------------------------------------------------------
 */

static int refuse(const struct tensor *tensor, struct ckpt_err *err) {
    struct quoted name;
    quote(&name, tensor->name, tensor->name_len);
    if (tensor->encoding != ENCODING_DENSE)
        return err_set(err, CKPT_E_INVAL, "tensor %s is quantized already: %s", name.text,
            encoding_names[tensor->encoding]);
    if (tensor->rank >= 2 && tensor->dtype != DTYPE_F32)
        return err_set(err, CKPT_E_INVAL, "tensor %s of rank %" PRIu32 " is %s, only F32 is quantized",
            name.text, tensor->rank, dtype_table[tensor->dtype].name);
    return 0;
}

static void quantize_tensor(struct model_tensor *item, enum encoding encoding) {
    const uint64_t blocks = (item->tensor.elements - 1) / QUANTIZE_BLOCK + 1;
    const uint64_t block_bytes =
        QUANTIZE_SCALE_BYTES + (encoding == ENCODING_Q4 ? QUANTIZE_BLOCK / 2 : QUANTIZE_BLOCK);
    item->tensor.encoding = (uint8_t)encoding;
    item->tensor.block = QUANTIZE_BLOCK;
    item->data.len = blocks * block_bytes; /* small tensors grow, large ones shrink; 36 bytes for 32 values at
                                              most cannot overflow */
    item->data.put = put_quantized;
}

int quantize_model(struct model *model, enum encoding encoding, struct ckpt_err *err) {
    uint64_t quantized = 0;
    for (uint64_t i = 0; i < model->weights.count; i++) {
        int rc = refuse(&model->weights.items[i].tensor, err);
        if (rc)
            return rc;
    }
    for (uint64_t i = 0; i < model->weights.count; i++) {
        struct model_tensor *item = &model->weights.items[i];
        if (item->tensor.rank < 2 || !item->tensor.elements)
            continue;
        quantize_tensor(item, encoding);
        quantized++;
    }
    model->optimizer = (struct model_optimizer){0};
    return quantized ? 0
                     : err_set(err, CKPT_E_INVAL,
                           "none of the %" PRIu64 " weights is F32 of rank 2 or more with an element",
                           model->weights.count);
}
