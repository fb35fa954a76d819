/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint that is read once from its start to its end: bytes are hashed on their way out, and are
 * provisional until stream_settle says that they hold. The guard would read a large section twice, to verify
 * it and then to serve it. Only for who tells nobody what was made of the bytes before that.
 *
 * A read that goes on behind the ones before in its unit is hashed, with what was left out in between; a
 * smaller offset is read through the guard, and so is everything where units are small (chunks) or missing.
 *
 * Threads: one at a time.
 */
#ifndef VERIFY_STREAM_H
#define VERIFY_STREAM_H

#include "verify/guard.h"

/* As guarded_source, but for what is said above. */
int stream_source(struct guard *guard, struct source *under, const struct ckpt_cancel *cancel,
    struct source **ret_stream, struct ckpt_err *err);
/*
 * Reads the rest of every unit that something was read of. 0: all that was read from the stream is what the
 * digests vouch for. Errors as guard_read.
 */
int stream_settle(struct source *stream, struct ckpt_err *err);

#endif
