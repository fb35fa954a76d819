/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/put.h"

#include <string.h>

unsigned put_digits(uint64_t value) {
    unsigned digits = 1;
    for (; value >= 10; value /= 10)
        digits++;
    return digits;
}

void put_u64(struct buf *buf, uint64_t value) {
    char text[20];
    size_t at = sizeof text;
    do
        text[--at] = (char)('0' + value % 10);
    while (value /= 10);
    buf_put(buf, text + at, sizeof text - at);
}

static void put_escape(struct buf *buf, unsigned char byte) {
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *known = byte ? strchr(plain, byte) : NULL;
    if (known) {
        buf_putc(buf, '\\');
        buf_putc(buf, letters[known - plain]);
    } else {
        buf_printf(buf, "\\u%04x", (unsigned)byte);
    }
}

void put_text(struct buf *buf, const char *text, size_t len) {
    size_t start = 0;
    buf_putc(buf, '"');
    for (size_t at = 0; at < len; at++) {
        unsigned char byte = (unsigned char)text[at];
        if (byte >= 0x20 && byte != '"' && byte != '\\')
            continue;
        buf_put(buf, text + start, at - start);
        put_escape(buf, byte);
        start = at + 1;
    }
    buf_put(buf, text + start, len - start);
    buf_putc(buf, '"');
}

void put_list(struct buf *buf, const uint64_t *values, uint32_t count, const char *comma) {
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            buf_puts(buf, comma);
        put_u64(buf, values[i]);
    }
}
