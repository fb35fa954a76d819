/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/segment.h"

#include "base/ovf.h"
#include "dequant/values.h"

#include <stdlib.h>
#include <string.h>

/* Elements converted at a time: a whole number of blocks, and at most 128 KiB of stored bytes (BF16). */
#define BATCH_ELEMENTS ((uint64_t)64 * 1024)
#define SCRATCH_BYTES (2 * BATCH_ELEMENTS)

/* A run of elements, loaded into the scratch: integers, then scales. */
struct batch {
    struct values values;
    const uint8_t *ints, *scales;
};

static int load(struct reader *reader, struct batch *batch, uint64_t off, struct ckpt_err *err) {
    const struct values *values = &batch->values;
    if (!reader->scratch && !(reader->scratch = malloc(SCRATCH_BYTES)))
        return err_set(err, CKPT_E_NOMEM, "no memory to convert a tensor");
    uint8_t *scales = reader->scratch + values->ints.len;
    batch->ints = reader->scratch;
    batch->scales = scales;
    int rc = guard_read(
        reader->guard, off + values->ints.off, reader->scratch, values->ints.len, reader->cancel, err);
    if (rc || !values->scales.len)
        return rc;
    return guard_read(
        reader->guard, off + values->scales.off, scales, values->scales.len, reader->cancel, err);
}

/* Bytes [skip, skip + len) of the batch's float32 values: whole ones straight into out, cut ones by way of a
 * word. */
static void emit(const struct batch *batch, uint64_t skip, uint8_t *out, uint64_t len) {
    while (len) {
        uint64_t element = skip / 4, inside = skip % 4, n;
        if (inside || len < 4) {
            uint8_t word[4];
            values_convert(&batch->values, batch->ints, batch->scales, element, 1, word);
            n = ovf_min(len, 4 - inside);
            memcpy(out, word + inside, n);
        } else {
            n = len / 4 * 4;
            values_convert(&batch->values, batch->ints, batch->scales, element, n / 4, out);
        }
        out += n;
        skip += n;
        len -= n;
    }
}

static int read_values(struct reader *reader, const struct segment *segment, uint64_t skip, uint8_t *out,
    uint64_t len, struct ckpt_err *err) {
    while (len) {
        /* Up to the next multiple of a batch: later batches then start at a block. */
        uint64_t first = skip / 4, last = (skip + len - 1) / 4;
        uint64_t end = ovf_min(last + 1, (first / BATCH_ELEMENTS + 1) * BATCH_ELEMENTS);
        struct batch batch = {.values = values_of(segment->of.tensor, first, end - first)};
        int rc = load(reader, &batch, segment->off, err);
        if (rc)
            return rc;
        uint64_t n = ovf_min(len, end * 4 - skip);
        emit(&batch, skip - first * 4, out, n);
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
