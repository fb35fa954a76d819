/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is written behind its caller's back: while one piece is on its way to the disk the caller makes
 * the next. Around the page cache where the file system lets us (sink.h).
 *
 * Threads: one at a time.
 */
#ifndef PACK_BEHIND_H
#define PACK_BEHIND_H

#include "base/err.h"

struct behind;

/* file and name are borrowed; bytes: how many will be written from offset 0 on. Errors: NOMEM. */
int behind_new(int file, const char *name, uint64_t bytes, struct behind **ret_behind, struct ckpt_err *err);
/*
 * Waits for the piece before, whose error is returned, then begins to write this one: its bytes stay as they
 * are until the next call. Where no thread can be had it is written at once. Errors: IO.
 */
int behind_write(struct behind *behind, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err);
/* Waits for the last piece. Errors: IO. */
int behind_wait(struct behind *behind, struct ckpt_err *err);
void behind_free(struct behind *behind); /* waits, too; NULL is allowed */

#endif
