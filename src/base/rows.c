/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rows.h"

#include <stdlib.h>

int rows_measure(struct rows *rows, struct ckpt_err *err) {
    struct buf buf = {0};
    uint64_t at = 0;
    rows->starts = calloc(rows->count + 1, sizeof *rows->starts);
    for (uint64_t i = 0; rows->starts && i < rows->count && !buf.failed; i++) {
        rows->starts[i] = at;
        rows->render(rows, i, &buf);
        at += buf.len; /* bytes that were in memory a moment ago: the sum cannot pass 2^63 */
        buf.len = 0;
    }
    bool whole = rows->starts && !buf.failed;
    buf_free(&buf);
    if (!whole) {
        rows_free(rows);
        return err_set(
            err, CKPT_E_NOMEM, "no memory for a text of %llu rows", (unsigned long long)rows->count);
    }
    rows->starts[rows->count] = at;
    return 0;
}

uint64_t rows_start(const struct rows *rows, uint64_t index) {
    return rows->starts ? rows->starts[index] : rows->start_of(index);
}

uint64_t rows_find(const struct rows *rows, uint64_t offset) {
    uint64_t low = 0, high = rows->count; /* start(low) <= offset < start(high) */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (rows_start(rows, middle) <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void rows_free(struct rows *rows) {
    free(rows->starts);
    rows->starts = NULL;
}
