/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that takes another's place when it is complete: whole or not at all. It is written under a temporary
 * name in the target's directory, flushed to the disk and renamed over the target; then the directory is
 * flushed. Until the rename the old file is untouched.
 *
 * A temporary that a killed writer left is removed when the next file of that name is begun (temporary.h).
 *
 * Threads: one at a time.
 */
#ifndef PACK_REPLACE_H
#define PACK_REPLACE_H

#include "base/err.h"

struct replace;

/*
 * Begins the file for `path`; a symbolic link is followed to what it names. Missing parent directories are
 * made. An existing file keeps its mode; a new one gets 0666 less the umask. Errors: IO (no permission, a
 * directory or anything else that is no regular file stands there), NOMEM.
 */
int replace_begin(const char *path, struct replace **ret_replace, struct ckpt_err *err);
/* Open for reading and writing, at offset 0. Belongs to the replace. */
int replace_fd(const struct replace *replace);
/* Flushes, renames, flushes the directory. Frees in any case; after a failure the target is as it was (but
 * when only the last flush failed: then the new file stands, and the message says so). Errors: IO. */
int replace_commit(struct replace *replace, struct ckpt_err *err);
/* Removes the temporary. NULL is allowed. */
void replace_abandon(struct replace *replace);

#endif
