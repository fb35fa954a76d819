/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void json_put_string(struct buf *buf, const char *text, size_t len) {
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

/* %g writes the decimal point of the process's locale, which may be several bytes; JSON wants a dot. */
static void put_with_dot(struct buf *buf, const char *number) {
    static const char others[] = "+-0123456789e";
    size_t head = strspn(number, others);
    buf_put(buf, number, head);
    if (!number[head])
        return;
    buf_putc(buf, '.');
    buf_puts(buf, number + head + strcspn(number + head, others));
}

void json_put_f32(struct buf *buf, float value) {
    char text[40];
    if (!isfinite(value)) {
        buf_puts(buf, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    for (int digits = 1; digits <= 9; digits++) { /* 9 always reads back */
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        float back = strtof(text, NULL);
        if (!memcmp(&back, &value, sizeof value))
            break;
    }
    put_with_dot(buf, text);
}
