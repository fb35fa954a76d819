/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ovf.h"
#include "base/put.h"
#include "tree/views.h"

#include <string.h>

#define MAGIC "\x93NUMPY\x01\x00"
#define PREFIX_BYTES 10 /* magic, version, length of the text */
#define ALIGN 64
#define TEXT_MAX 65535 /* format 1.0 counts the text in 16 bits */
#define TEXT_DESCR "{'descr': '"
#define TEXT_SHAPE "', 'fortran_order': False, 'shape': ("
#define TEXT_END "), }"
#define GROWTH_DIGITS 21 /* NumPy leaves room for the first extent to grow */

/* The view's type; NULL when NumPy has none. */
static const char *descr_of(const struct tensor *tensor) {
    const struct dtype_info *info = &dtype_table[tensor->dtype];
    return tensor->encoding != ENCODING_DENSE || info->widens ? "<f4" : info->descr;
}

/* Bytes of the text without padding and newline. */
static uint64_t text_bytes(const struct tensor *tensor, const char *descr) {
    uint64_t bytes = strlen(TEXT_DESCR TEXT_SHAPE TEXT_END) + strlen(descr);
    for (uint32_t i = 0; i < tensor->rank; i++)
        bytes += put_digits(tensor->shape[i]) + (i ? 2 : 0);
    if (tensor->rank)
        bytes += GROWTH_DIGITS - put_digits(tensor->shape[0]);
    return bytes + (tensor->rank == 1);
}

static uint64_t header_bytes(const struct tensor *tensor) {
    return (PREFIX_BYTES + text_bytes(tensor, descr_of(tensor)) + 1 + ALIGN - 1) / ALIGN * ALIGN;
}

bool npy_exists(const struct tensor *tensor) {
    return descr_of(tensor) && tensor->rank <= TEXT_MAX && header_bytes(tensor) - PREFIX_BYTES <= TEXT_MAX;
}

static bool is_converted(const struct tensor *tensor) {
    return tensor->encoding != ENCODING_DENSE || dtype_table[tensor->dtype].widens;
}

bool npy_size(const struct tensor *tensor, uint64_t *ret_bytes) {
    uint64_t body = tensor->size, bytes;
    if (is_converted(tensor) && !ovf_mul(tensor->elements, 4, &body))
        return false;
    if (!ovf_add(body, header_bytes(tensor), &bytes) || bytes > INT64_MAX)
        return false;
    *ret_bytes = bytes;
    return true;
}

void npy_header(const struct tensor *tensor, struct buf *buf) {
    uint64_t total = header_bytes(tensor), text = total - PREFIX_BYTES;
    buf_put(buf, MAGIC, PREFIX_BYTES - 2);
    buf_putc(buf, (char)(text & 0xff));
    buf_putc(buf, (char)(text >> 8));
    buf_puts(buf, TEXT_DESCR);
    buf_puts(buf, descr_of(tensor));
    buf_puts(buf, TEXT_SHAPE);
    put_list(buf, tensor->shape, tensor->rank, ", ");
    buf_puts(buf, tensor->rank == 1 ? "," TEXT_END : TEXT_END);
    while (!buf->failed && buf->len < total - 1)
        buf_putc(buf, ' ');
    buf_putc(buf, '\n');
}

struct segment npy_body(const struct catalog *catalog, const struct tensor *tensor, uint64_t at) {
    struct range stored = tensor_range(catalog, tensor);
    if (is_converted(tensor))
        return (struct segment){.kind = SEGMENT_VALUES,
            .at = at,
            .len = tensor->elements * 4, /* npy_size checked it */
            .off = stored.off,
            .of.tensor = tensor};
    return (struct segment){.kind = SEGMENT_RANGE, .at = at, .len = stored.len, .off = stored.off};
}
