/* SPDX-License-Identifier: Apache-2.0 */
/* A payload that arrives through a pipe or a socket: it is written to the file as it comes. */
#ifndef PACK_SEAL_STREAM_H
#define PACK_SEAL_STREAM_H

#include "base/err.h"

struct seal_stream {
    int from, file;
    const char *name; /* of the file, for messages */
    uint64_t base;    /* where the payload starts in the file */
    uint64_t bytes;   /* of it that were written */
    uint8_t *buffer;
};

/* Errors: NOMEM. */
int seal_stream_begin(
    struct seal_stream *stream, int from, int file, const char *name, uint64_t base, struct ckpt_err *err);
/* Waits at most some milliseconds for more bytes and writes them. Errors: IO. */
int seal_stream_more(struct seal_stream *stream, uint64_t *ret_bytes, bool *ret_ended, struct ckpt_err *err);
/* Makes the payload start at `base`, which is not before where it starts. Errors: IO, INTR. */
int seal_stream_move(struct seal_stream *stream, uint64_t base, const struct ckpt_write_options *options,
    struct ckpt_err *err);
void seal_stream_end(struct seal_stream *stream); /* a zeroed one is allowed */

#endif
