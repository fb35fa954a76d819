/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/ovf.h"
#include "base/put.h"
#include "base/quote.h"
#include "tree/views.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES 8
#define ALIGN 8

/* Q4 and Q8 are exported as what they stand for. */
static enum dtype export_dtype(const struct tensor *tensor) {
    return tensor->encoding == ENCODING_DENSE ? (enum dtype)tensor->dtype : DTYPE_F32;
}

static bool export_bytes(const struct tensor *tensor, uint64_t *ret_bytes) {
    *ret_bytes = tensor->size;
    return tensor->encoding == ENCODING_DENSE || ovf_mul(tensor->elements, 4, ret_bytes);
}

/* ---- the header: length and metadata, a row for each tensor, the end and its padding ------------------- */

static void render_tensor(const struct export *export, uint64_t at, struct buf *buf) {
    const struct tensor *tensor = &export->group->items[export->order[at]];
    buf_putc(buf, ',');
    json_put_string(buf, tensor->name, tensor->name_len);
    buf_puts(buf, ":{\"dtype\":\"");
    buf_puts(buf, dtype_table[export_dtype(tensor)].name);
    buf_puts(buf, "\",\"shape\":[");
    put_list(buf, tensor->shape, tensor->rank, ",");
    buf_puts(buf, "],\"data_offsets\":[");
    put_u64(buf, export->data[at]);
    buf_putc(buf, ',');
    put_u64(buf, export->data[at + 1]);
    buf_puts(buf, "]}");
}

/* While the rows are measured the length is not known yet; its width is. */
static void render_start(const struct rows *rows, struct buf *buf) {
    uint64_t length = rows_start(rows, rows->count) - LENGTH_BYTES;
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        buf_putc(buf, (char)(length >> (8 * i) & 0xff));
    buf_puts(buf, "{\"__metadata__\":{\"format\":\"pt\"}");
}

static void render(const struct rows *rows, uint64_t index, struct buf *buf) {
    const struct export *export = rows->arg;
    if (index == 0) {
        render_start(rows, buf);
    } else if (index <= export->count) {
        render_tensor(export, index - 1, buf);
    } else {
        buf_putc(buf, '}');
        for (uint64_t end = rows_start(rows, index) + 1; end % ALIGN; end++)
            buf_putc(buf, ' ');
    }
}

/* ---- the order: largest elements first, then by name ----------------------------------------------------
 */

static int compare(const void *left, const void *right, void *arg) {
    const struct tensor *items = arg, *a = &items[*(const uint32_t *)left],
                        *b = &items[*(const uint32_t *)right];
    unsigned a_bits = dtype_table[export_dtype(a)].bits, b_bits = dtype_table[export_dtype(b)].bits;
    if (a_bits != b_bits)
        return a_bits > b_bits ? -1 : 1;
    int order = memcmp(a->name, b->name, ovf_min(a->name_len, b->name_len));
    return order ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static void put_in_order(struct export *export) {
    for (uint64_t i = 0; i < export->group->count; i++)
        if (export->group->items[i].dtype != DTYPE_C128)
            export->order[export->count++] = (uint32_t)i;
    qsort_r(export->order, export->count, sizeof *export->order, compare, export->group->items);
}

static int place_data(struct export *export, struct ckpt_err *err) {
    uint64_t at = 0, bytes;
    for (uint64_t i = 0; i < export->count; i++) {
        const struct tensor *tensor = &export->group->items[export->order[i]];
        struct quoted name;
        export->data[i] = at;
        if (!export_bytes(tensor, &bytes) || !ovf_add(at, bytes, &at) || at > INT64_MAX / 2)
            return err_set(err, CKPT_E_LIMIT, "with tensor %s the export passes 2^62 bytes",
                quote(&name, tensor->name, tensor->name_len));
    }
    export->data[export->count] = at;
    return 0;
}

int export_new(
    const struct catalog *catalog, enum group_kind group, struct export **ret_export, struct ckpt_err *err) {
    struct export *export = calloc(1, sizeof *export);
    if (!export)
        return err_set(err, CKPT_E_NOMEM, "no memory for an export");
    export->catalog = catalog;
    export->group = &catalog->groups[group];
    export->order = calloc(export->group->count + 1, sizeof *export->order);
    export->data = calloc(export->group->count + 1, sizeof *export->data);
    int rc = export->order && export->data ? 0 : err_set(err, CKPT_E_NOMEM, "no memory for an export");
    if (!rc) {
        put_in_order(export);
        rc = place_data(export, err);
    }
    if (!rc) {
        export->header = (struct rows){.count = export->count + 2, .render = render, .arg = export};
        rc = rows_measure(&export->header, err);
    }
    if (rc)
        export_free(export);
    else
        *ret_export = export;
    return rc;
}

void export_free(struct export *export) {
    if (!export)
        return;
    rows_free(&export->header);
    free(export->order);
    free(export->data);
    free(export);
}

/* ---- reading --------------------------------------------------------------------------------------------
 */

static uint64_t header_bytes(const struct export *export) {
    return rows_start(&export->header, export->header.count);
}

uint64_t export_size(const struct export *export) {
    return header_bytes(export) + export->data[export->count];
}

struct segment export_segment(const struct export *export, uint64_t offset) {
    uint64_t head = header_bytes(export), low = 0, high = export->count;
    while (high - low > 1) { /* data[low] <= offset - head < data[high]: empty tensors are passed over */
        uint64_t middle = low + (high - low) / 2;
        if (export->data[middle] <= offset - head)
            low = middle;
        else
            high = middle;
    }
    const struct tensor *tensor = &export->group->items[export->order[low]];
    struct segment segment = {.kind = tensor->encoding == ENCODING_DENSE ? SEGMENT_RANGE : SEGMENT_VALUES,
        .at = head + export->data[low],
        .len = export->data[low + 1] - export->data[low],
        .off = tensor_range(export->catalog, tensor).off};
    if (segment.kind == SEGMENT_VALUES)
        segment.of.tensor = tensor;
    return segment;
}
