/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is a list of segments. One reader serves all of them: it copies, renders, or reads through the guard
 * and converts; memory is bounded (one scratch buffer a read), and any byte may be read first.
 */
#ifndef TREE_SEGMENT_H
#define TREE_SEGMENT_H

#include "base/rows.h"
#include "catalog/catalog.h"
#include "verify/guard.h"

enum segment_kind {
    SEGMENT_BYTES,  /* bytes at hand */
    SEGMENT_ROW,    /* a row of text */
    SEGMENT_RANGE,  /* stored bytes, as they are */
    SEGMENT_VALUES, /* a tensor's stored elements, as float32 */
};

struct segment {
    enum segment_kind kind;
    uint64_t at, len; /* in the file */
    uint64_t off;     /* RANGE, VALUES: the stored bytes' place in the source */
    union {
        const void *bytes;
        struct {
            const struct rows *rows;
            uint64_t index;
        } row;
        const struct tensor *tensor;
    } of;
};

/* The state of one read. Zero but for guard and cancel at first; reader_done frees it. */
struct reader {
    struct guard *guard;
    const struct ckpt_cancel *cancel;
    uint8_t *scratch;
    struct buf text;
};

/* Bytes [skip, skip + len) of the segment into out. Errors: those of guard_read, NOMEM. */
int segment_read(struct reader *reader, const struct segment *segment, uint64_t skip, uint8_t *out,
    size_t len, struct ckpt_err *err);
void reader_done(struct reader *reader);

#endif
