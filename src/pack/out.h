/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is being written from its start to its end, with what all writers need on the way: buffers, of
 * which one is written while the other is filled, the FNV-1a 64 of a stretch, progress, and a stop when the
 * caller asks for one. Built on replace.h: the
 * target is replaced by out_commit or not at all.
 *
 * Threads: one at a time.
 */
#ifndef PACK_OUT_H
#define PACK_OUT_H

#include "base/err.h"
#include "source/source.h"

struct out;

/* total: bytes that will be written, for progress (0: unknown). options may be NULL. Errors as
 * replace_begin. */
int out_begin(const char *path, uint64_t total, const struct ckpt_write_options *options,
    struct out **ret_out, struct ckpt_err *err);

/* After a failure of any of these only out_abandon makes sense. Errors: IO (disk full), INTR; out_copy also
 * those of source_read. */
int out_put(struct out *out, const void *bytes, size_t len, struct ckpt_err *err);
int out_zeros(struct out *out, uint64_t len, struct ckpt_err *err);
int out_copy(struct out *out, struct source *source, uint64_t off, uint64_t len, struct ckpt_err *err);
/* Room for len bytes of the caller's to fill in at once (len at most OUT_ROOM_MAX), which out_put_room then
 * appends: saves a copy where the bytes are computed. Valid until the next call. */
#define OUT_ROOM_MAX ((size_t)1 << 20)
int out_room(struct out *out, size_t len, uint8_t **ret_room, struct ckpt_err *err);
int out_put_room(struct out *out, size_t len, struct ckpt_err *err);
/* Bytes written so far. */
uint64_t out_at(const struct out *out);
/* Writes over bytes that were written before (a header whose digests were not known yet). They count neither
 * for out_at nor for a digest. */
int out_patch(struct out *out, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err);

/* The FNV-1a 64 of what is appended between the two. */
int out_digest_begin(struct out *out, struct ckpt_err *err);
int out_digest_end(struct out *out, uint64_t *ret_fnv1a64, struct ckpt_err *err);

/* Both free out. Errors as replace_commit, and INVAL when `total` was promised and something else was
 * written. */
int out_commit(struct out *out, struct ckpt_err *err);
void out_abandon(struct out *out); /* NULL is allowed */

/* What a writer that does its own writing shares with these: INTR when the caller asks to stop; progress. */
int out_stop(const struct ckpt_write_options *options, struct ckpt_err *err);
void out_tell(const struct ckpt_write_options *options, uint64_t done, uint64_t total);

#endif
