/* SPDX-License-Identifier: Apache-2.0 */
/* A range of a source in pieces, in order. A long range is read ahead by a thread of its own, so that the
 * reading hides behind what the caller does with the pieces. One caller; memory is a few pieces. */
#ifndef VERIFY_FEED_H
#define VERIFY_FEED_H

#include "source/source.h"

struct feed;

/* Pieces of `piece` bytes (at least 1), the last one shorter. off + len does not overflow. Errors: NOMEM. */
int feed_open(struct source *source, uint64_t off, uint64_t len, size_t piece, struct feed **ret_feed,
    struct ckpt_err *err);
/* The next piece (len 0 at the end), valid until the next call. Errors: as source_read. */
int feed_next(struct feed *feed, const void **ret_bytes, size_t *ret_len, struct ckpt_err *err);
void feed_close(struct feed *feed); /* waits for a read that is under way; NULL is allowed */

#endif
