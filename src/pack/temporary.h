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

#include <sys/types.h>

/* A path taken apart: the open directory (O_PATH would not do: it is flushed), and the name in it. */
struct place {
    char *path; /* as given, for messages */
    char *name;
    int dir;
    char *parents;   /* the path of its directory, when that had to be made */
    unsigned levels; /* directories that were made: it, the one above it, and so on */
};

/* Follows symbolic links at the path's end; makes missing directories above it. Errors: IO, INVAL (the path
 * is empty or names no file: "/", "dir/", ".."), NOMEM. */
int place_open(const char *path, struct place *ret_place, struct ckpt_err *err);
/* Flushes the directory, so that a rename in it lasts, and the ones that hold those that were made. */
int place_flush(const struct place *place, struct ckpt_err *err);
/* Removes the directories that were made, as far as they are empty. */
void place_undo(struct place *place);
void place_close(struct place *place); /* a zeroed one with dir -1 is allowed */

#define TEMPORARY_NAME_BYTES 256

struct temporary {
    char name[TEMPORARY_NAME_BYTES];
    int fd;      /* locked, and open (a directory: for reading); -1: there is none */
    mode_t mode; /* what a new target gets: 0666, of a directory 0777, less the umask */
};

/*
 * Removes what dead writers of this target left (files, or directories), then makes a fresh temporary of the
 * target's. Until it is complete nobody else is to see it: its mode is 0600 or 0700. Errors: IO.
 */
int temporary_file(const struct place *place, struct temporary *ret_temporary, struct ckpt_err *err);
int temporary_directory(const struct place *place, struct temporary *ret_temporary, struct ckpt_err *err);

/* Removes `name` in the directory `dir` with everything below it. Best effort. */
void temporary_remove(int dir, const char *name);

#endif
