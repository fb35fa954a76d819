/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text of many rows that is never in memory whole: where each row starts is known, and a row is rendered
 * when it is read. Immutable once made: any number of threads may read.
 */
#ifndef BASE_ROWS_H
#define BASE_ROWS_H

#include "base/buf.h"
#include "base/err.h"

struct rows {
    uint64_t count;
    uint64_t *starts; /* count + 1 of them, owned; NULL when start_of computes them */
    uint64_t (*start_of)(uint64_t index);
    /* Appends row `index`; always the same bytes. rows_start of it and the rows before may be asked. */
    void (*render)(const struct rows *rows, uint64_t index, struct buf *buf);
    const void *arg;
};

/* Renders everything once to learn the starts. Errors: NOMEM. */
int rows_measure(struct rows *rows, struct ckpt_err *err);
/* Offset of row `index` <= count; that of `count` is the text's length. */
uint64_t rows_start(const struct rows *rows, uint64_t index);
/* The row that holds the byte at offset < length. */
uint64_t rows_find(const struct rows *rows, uint64_t offset);
void rows_free(struct rows *rows);

#endif
