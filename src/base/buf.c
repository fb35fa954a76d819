/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes and a NUL. */
static bool reserve(struct buf *buf, size_t more) {
    if (buf->failed || more > SIZE_MAX - buf->len - 1)
        return !(buf->failed = true);
    size_t need = buf->len + more + 1;
    if (buf->max && need - 1 > buf->max)
        return !(buf->failed = true);
    if (need <= buf->cap)
        return true;
    size_t cap = buf->cap > SIZE_MAX / 2 ? need : buf->cap * 2;
    if (cap < need)
        cap = need < 64 ? 64 : need;
    char *grown = realloc(buf->bytes, cap);
    if (!grown)
        return !(buf->failed = true);
    buf->bytes = grown;
    buf->cap = cap;
    return true;
}

void buf_put(struct buf *buf, const void *bytes, size_t len) {
    if (!reserve(buf, len))
        return;
    if (len)
        memcpy(buf->bytes + buf->len, bytes, len);
    buf->len += len;
}

void buf_puts(struct buf *buf, const char *text) {
    buf_put(buf, text, strlen(text));
}

void buf_putc(struct buf *buf, char c) {
    buf_put(buf, &c, 1);
}

void buf_printf(struct buf *buf, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    if (len >= 0 && reserve(buf, (size_t)len)) {
        vsnprintf(buf->bytes + buf->len, (size_t)len + 1, fmt, again);
        buf->len += (size_t)len;
    } else {
        buf->failed = true;
    }
    va_end(again);
    va_end(args);
}

void buf_clear(struct buf *buf) {
    buf->len = 0;
    buf->failed = false;
}

void buf_free(struct buf *buf) {
    free(buf->bytes);
    *buf = (struct buf){0};
}

const char *buf_cstr(struct buf *buf) {
    if (!reserve(buf, 0))
        return NULL;
    buf->bytes[buf->len] = '\0';
    return buf->bytes;
}
