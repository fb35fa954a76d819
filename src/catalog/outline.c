/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/outline.h"

#include "base/json.h"
#include "base/ovf.h"
#include "base/put.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES 8
#define ALIGN 8
#define METADATA "__metadata__"

/* ---- one tensor ---------------------------------------------------------------------------------------- */

const char *outline_refuses(const struct tensor *tensor) {
    if (tensor->dtype == DTYPE_C128)
        return "safetensors has no type C128";
    if (tensor->name_len == strlen(METADATA) && !memcmp(tensor->name, METADATA, tensor->name_len))
        return "safetensors has this name for its metadata";
    return NULL;
}

enum dtype outline_dtype(const struct tensor *tensor) {
    return tensor->encoding == ENCODING_DENSE ? (enum dtype)tensor->dtype : DTYPE_F32;
}

bool outline_bytes(const struct tensor *tensor, uint64_t *ret_bytes) {
    *ret_bytes = tensor->size;
    return tensor->encoding == ENCODING_DENSE || ovf_mul(tensor->elements, 4, ret_bytes);
}

/* ---- the header ---------------------------------------------------------------------------------------- */

/* While the rows are measured the length is not known yet; its width is. */
static void put_start(const struct outline *outline, struct buf *buf) {
    uint64_t length = outline_header_bytes(outline) - LENGTH_BYTES;
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        buf_putc(buf, (char)(length >> (8 * i) & 0xff));
    buf_putc(buf, '{');
    if (!outline->metadata)
        return;
    buf_puts(buf, "\"" METADATA "\":");
    buf_put(buf, outline->metadata, outline->metadata_len);
}

static void put_tensor(const struct outline *outline, uint64_t at, struct buf *buf) {
    const struct tensor *tensor = &outline->items[outline->order[at]];
    if (at || outline->metadata)
        buf_putc(buf, ',');
    json_put_string(buf, tensor->name, tensor->name_len);
    buf_puts(buf, ":{\"dtype\":\"");
    buf_puts(buf, dtype_table[outline_dtype(tensor)].name);
    buf_puts(buf, "\",\"shape\":[");
    put_list(buf, tensor->shape, tensor->rank, ",");
    buf_puts(buf, "],\"data_offsets\":[");
    put_u64(buf, outline->data[at]);
    buf_putc(buf, ',');
    put_u64(buf, outline->data[at + 1]);
    buf_puts(buf, "]}");
}

static void render(const struct rows *rows, uint64_t index, struct buf *buf) {
    const struct outline *outline = rows->arg;
    if (index == 0) {
        put_start(outline, buf);
    } else if (index <= outline->count) {
        put_tensor(outline, index - 1, buf);
    } else {
        buf_putc(buf, '}');
        for (uint64_t end = rows_start(rows, index) + 1; end % ALIGN; end++)
            buf_putc(buf, ' ');
    }
}

/* ---- order and places ---------------------------------------------------------------------------------- */

int outline_compare(const struct tensor *a, const struct tensor *b) {
    unsigned a_bits = dtype_table[outline_dtype(a)].bits, b_bits = dtype_table[outline_dtype(b)].bits;
    if (a_bits != b_bits)
        return a_bits > b_bits ? -1 : 1;
    int order = memcmp(a->name, b->name, ovf_min(a->name_len, b->name_len));
    return order ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static int compare(const void *left, const void *right, void *arg) {
    const struct tensor *items = arg;
    return outline_compare(&items[*(const uint32_t *)left], &items[*(const uint32_t *)right]);
}

static void put_in_order(struct outline *outline, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (!outline_refuses(&outline->items[i]))
            outline->order[outline->count++] = (uint32_t)i;
    void *items = (void *)(uintptr_t)outline->items; /* qsort_r knows no const */
    qsort_r(outline->order, outline->count, sizeof *outline->order, compare, items);
}

static int place_data(struct outline *outline, struct ckpt_err *err) {
    uint64_t at = 0, bytes;
    for (uint64_t i = 0; i < outline->count; i++) {
        const struct tensor *tensor = &outline->items[outline->order[i]];
        struct quoted name;
        outline->data[i] = at;
        if (!outline_bytes(tensor, &bytes) || !ovf_add(at, bytes, &at) || at > INT64_MAX / 2)
            return err_set(err, CKPT_E_LIMIT, "with tensor %s the data passes 2^62 bytes",
                quote(&name, tensor->name, tensor->name_len));
    }
    outline->data[outline->count] = at;
    return 0;
}

int outline_make(struct outline *outline, const struct tensor *items, uint64_t count, const char *metadata,
    size_t metadata_len, struct ckpt_err *err) {
    *outline = (struct outline){.items = items, .metadata = metadata, .metadata_len = metadata_len};
    if (count < UINT32_MAX) {
        outline->order = calloc(count + 1, sizeof *outline->order);
        outline->data = calloc(count + 1, sizeof *outline->data);
    }
    int rc = outline->order && outline->data ? 0 : err_set(err, CKPT_E_NOMEM, "no memory for a header");
    if (!rc) {
        put_in_order(outline, count);
        rc = place_data(outline, err);
    }
    if (!rc) {
        outline->header = (struct rows){.count = outline->count + 2, .render = render, .arg = outline};
        rc = rows_measure(&outline->header, err);
    }
    if (rc)
        outline_free(outline);
    return rc;
}

void outline_free(struct outline *outline) {
    rows_free(&outline->header);
    free(outline->order);
    free(outline->data);
    *outline = (struct outline){0};
}

uint64_t outline_header_bytes(const struct outline *outline) {
    return rows_start(&outline->header, outline->header.count);
}

uint64_t outline_size(const struct outline *outline) {
    return outline_header_bytes(outline) + outline->data[outline->count];
}
