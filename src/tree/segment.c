/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/segment.h"

#include "base/ovf.h"
#include "dequant/dequant.h"

#include <stdlib.h>
#include <string.h>

/* Elements converted at a time: a whole number of blocks, and at most 128 KiB of stored bytes (BF16). */
#define BATCH_ELEMENTS ((uint64_t)64 * 1024)
#define SCRATCH_BYTES (2 * BATCH_ELEMENTS)

/* Elements [first, first + count) of a tensor, loaded: where the stored integers and scales lie in the
 * scratch. */
struct batch {
    const struct tensor *tensor;
    uint64_t first, count;
    const uint8_t *ints, *scales; /* at the block that holds `first`; scales NULL when not quantized */
};

static void convert(const struct batch *batch, uint64_t skip, uint64_t count, uint8_t *out) {
    const struct tensor *tensor = batch->tensor;
    if (!batch->scales) {
        widen(tensor->dtype, batch->ints + skip * (dtype_table[tensor->dtype].bits / 8), count, out);
        return;
    }
    uint64_t at = batch->first % DEQUANT_BLOCK + skip, block = at / DEQUANT_BLOCK;
    const uint8_t *ints = batch->ints + block * dequant_block_bytes(tensor->encoding);
    const uint8_t *scale = batch->scales + 4 * block;
    if (tensor->encoding == ENCODING_Q4)
        dequant_q4(ints, scale, at % DEQUANT_BLOCK, count, out);
    else
        dequant_q8(ints, scale, at % DEQUANT_BLOCK, count, out);
}

static int load_dense(struct reader *reader, struct batch *batch, uint64_t off, struct ckpt_err *err) {
    uint64_t width = dtype_table[batch->tensor->dtype].bits / 8;
    batch->ints = reader->scratch;
    return guard_read(reader->guard, off + batch->first * width, reader->scratch, batch->count * width,
        reader->cancel, err);
}

/* All blocks' integers come first in the tensor's bytes, then all scales. */
static int load_quantized(struct reader *reader, struct batch *batch, uint64_t off, struct ckpt_err *err) {
    const struct tensor *tensor = batch->tensor;
    uint64_t width = dequant_block_bytes(tensor->encoding);
    uint64_t total = tensor->elements / DEQUANT_BLOCK + (tensor->elements % DEQUANT_BLOCK != 0);
    uint64_t first = batch->first / DEQUANT_BLOCK;
    uint64_t blocks = (batch->first + batch->count - 1) / DEQUANT_BLOCK + 1 - first;
    batch->ints = reader->scratch;
    batch->scales = reader->scratch + blocks * width;
    int rc =
        guard_read(reader->guard, off + first * width, reader->scratch, blocks * width, reader->cancel, err);
    if (rc)
        return rc;
    return guard_read(reader->guard, off + total * width + first * 4, reader->scratch + blocks * width,
        blocks * 4, reader->cancel, err);
}

static int load(struct reader *reader, struct batch *batch, uint64_t off, struct ckpt_err *err) {
    if (!reader->scratch && !(reader->scratch = malloc(SCRATCH_BYTES)))
        return err_set(err, CKPT_E_NOMEM, "no memory to convert a tensor");
    if (batch->tensor->encoding == ENCODING_DENSE)
        return load_dense(reader, batch, off, err);
    return load_quantized(reader, batch, off, err);
}

/* Bytes [skip, skip + len) of the batch's float32 values: whole ones straight into out, cut ones by way of a
 * word. */
static void emit(const struct batch *batch, uint64_t skip, uint8_t *out, uint64_t len) {
    while (len) {
        uint64_t element = skip / 4, inside = skip % 4, n;
        if (inside || len < 4) {
            uint8_t word[4];
            convert(batch, element, 1, word);
            n = ovf_min(len, 4 - inside);
            memcpy(out, word + inside, n);
        } else {
            n = len / 4 * 4;
            convert(batch, element, n / 4, out);
        }
        out += n;
        skip += n;
        len -= n;
    }
}

static int read_values(struct reader *reader, const struct segment *segment, uint64_t skip, uint8_t *out,
    uint64_t len, struct ckpt_err *err) {
    while (len) {
        struct batch batch = {.tensor = segment->of.tensor, .first = skip / 4};
        /* Up to the next multiple of a batch: later batches then start at a block. */
        uint64_t last = (skip + len - 1) / 4, end = (batch.first / BATCH_ELEMENTS + 1) * BATCH_ELEMENTS;
        batch.count = ovf_min(last + 1, end) - batch.first;
        int rc = load(reader, &batch, segment->off, err);
        if (rc)
            return rc;
        uint64_t n = ovf_min(len, (batch.first + batch.count) * 4 - skip);
        emit(&batch, skip - batch.first * 4, out, n);
        out += n;
        skip += n;
        len -= n;
    }
    return 0;
}

static int read_row(struct reader *reader, const struct segment *segment, uint64_t skip, uint8_t *out,
    size_t len, struct ckpt_err *err) {
    buf_clear(&reader->text);
    segment->of.row.rows->render(segment->of.row.rows, segment->of.row.index, &reader->text);
    if (reader->text.failed)
        return err_set(err, CKPT_E_NOMEM, "no memory for a row of text");
    memcpy(out, reader->text.bytes + skip, len);
    return 0;
}

int segment_read(struct reader *reader, const struct segment *segment, uint64_t skip, uint8_t *out,
    size_t len, struct ckpt_err *err) {
    switch (segment->kind) {
    case SEGMENT_BYTES:
        memcpy(out, (const uint8_t *)segment->of.bytes + skip, len);
        return 0;
    case SEGMENT_ROW:
        return read_row(reader, segment, skip, out, len, err);
    case SEGMENT_RANGE:
        return guard_read(reader->guard, segment->off + skip, out, len, reader->cancel, err);
    case SEGMENT_VALUES:
        return read_values(reader, segment, skip, out, len, err);
    }
    return err_set(err, CKPT_E_INVAL, "no such kind of segment: %d", (int)segment->kind);
}

void reader_done(struct reader *reader) {
    free(reader->scratch);
    buf_free(&reader->text);
}
