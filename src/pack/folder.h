/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory that is written whole or not at all: its files are made in a temporary directory beside the
 * target, flushed to the disk all at once, and the directory is renamed to the target; then the directory
 * above is flushed. What replace.h says of temporaries holds here, too.
 *
 * Paths are relative to the directory, without "." and "..". Threads: one at a time.
 */
#ifndef PACK_FOLDER_H
#define PACK_FOLDER_H

#include "base/err.h"

#include <time.h>

struct folder;

/*
 * Begins the directory for `path`, where nothing stands, or an empty directory, whose mode is kept; a
 * symbolic link is followed. Missing directories above it are made. Errors: IO (no permission; something
 * else stands there, and the message says what), INVAL (the path names no directory: "." or ".."), NOMEM.
 */
int folder_begin(const char *path, struct folder **ret_folder, struct ckpt_err *err);
/* Directories and files get 0777 and 0666 less the umask. Those above them have to be there.
 * One directory may be made twice. Errors: IO. */
int folder_mkdir(struct folder *folder, const char *path, struct ckpt_err *err);
int folder_create(struct folder *folder, const char *path, int *ret_fd, struct ckpt_err *err);
int folder_remove(struct folder *folder, const char *path, struct ckpt_err *err);
/* Of a directory ("": the whole), for when nothing is added to it any more: access and modification. */
int folder_times(
    struct folder *folder, const char *path, const struct timespec times[2], struct ckpt_err *err);
/* Both free. commit: after a failure the target is as it was, but when only the last flush failed: then it
 * stands, and the message says so. Errors: IO. */
int folder_commit(struct folder *folder, struct ckpt_err *err);
void folder_abandon(struct folder *folder); /* NULL is allowed */

#endif
