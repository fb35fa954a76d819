/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer. A failed append (no memory, past the cap) sets `failed` for good, so that a run of
 * appends is checked once at its end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *bytes; /* owned; NUL-terminated after buf_cstr */
    size_t len, cap;
    size_t max; /* 0: no cap */
    bool failed;
};

void buf_put(struct buf *buf, const void *bytes, size_t len);
void buf_puts(struct buf *buf, const char *text);
void buf_putc(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_clear(struct buf *buf); /* keeps the memory */
void buf_free(struct buf *buf);
/* The content as a C string (empty, never NULL, on a fresh buffer); NULL when an append failed. */
const char *buf_cstr(struct buf *buf);

#endif
