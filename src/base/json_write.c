/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain(char c) {
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

void json_put_string(struct buf *buf, const char *text, size_t len) {
    buf_putc(buf, '"');
    for (size_t start = 0, at = 0; at < len; start = ++at) {
        while (at < len && is_plain(text[at]))
            at++;
        buf_put(buf, text + start, at - start);
        if (at == len)
            break;
        if ((unsigned char)text[at] < 0x20)
            buf_printf(buf, "\\u%04x", (unsigned)text[at]);
        else
            buf_printf(buf, "\\%c", text[at]);
    }
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
