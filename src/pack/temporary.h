/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a target stands, and temporary files and directories beside it. A temporary is named
 * ".NAME.ckpt-XXXXXX" and locked with flock(2) as long as its writer lives, so that the next writer of the
 * same target can tell what a killed one left, and removes it.
 *
 * Threads: any, as long as no two use one place.
 */
#ifndef PACK_TEMPORARY_H
#define PACK_TEMPORARY_H

#include "base/err.h"

/* A path taken apart: the open directory (O_PATH would not do: it is flushed), and the name in it. */
struct place {
    char *path; /* as given, for messages */
    char *name;
    int dir;
};

/* Follows symbolic links at the path's end; makes missing directories above it. Errors: IO, INVAL (the path
 * is empty or names no file: "/", "dir/", ".."), NOMEM. */
int place_open(const char *path, struct place *ret_place, struct ckpt_err *err);
/* Flushes the directory, so that a rename in it lasts. */
int place_flush(const struct place *place, struct ckpt_err *err);
void place_close(struct place *place); /* a zeroed one with dir -1 is allowed */

#define TEMPORARY_NAME_BYTES 256

/*
 * Removes what dead writers of this target left, then makes a fresh temporary of the target's, locked and
 * open (a directory: for reading). The file has mode 0666 and the directory 0777, less the umask.
 * Errors: IO.
 */
int temporary_file(
    const struct place *place, char ret_name[TEMPORARY_NAME_BYTES], int *ret_fd, struct ckpt_err *err);
int temporary_directory(
    const struct place *place, char ret_name[TEMPORARY_NAME_BYTES], int *ret_fd, struct ckpt_err *err);

/* Removes `name` in the directory `dir` with everything below it. Best effort. */
void temporary_remove(int dir, const char *name);

#endif
