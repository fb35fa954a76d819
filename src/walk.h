/* SPDX-License-Identifier: Apache-2.0 */
/* The selected part of a checkpoint's tree, path by path. */
#ifndef WALK_H
#define WALK_H

#include <ckptfs.h>

/*
 * What a part is made of. A glob that is a path of the tree means that path (names may hold '[' and '*'), any
 * other is held against whole paths, and its '*' matches slashes too. A directory stands for all below it.
 */
struct selection {
    struct selected *globs; /* owned */
    size_t count;           /* 0: everything */
};

/* Errors: NOMEM. */
int selection_make(struct ckpt *ckpt, const char *const *globs, size_t count, struct selection *ret_selection,
    struct ckpt_err *err);
/* After a walk: the first glob that nothing matched, as it was given; NULL when there is none. */
const char *selection_unused(const struct selection *selection);
void selection_free(struct selection *selection); /* a zeroed one is allowed */

/* Paths have no slash at either end; the root is "". Each may be NULL; what it returns ends the walk. */
struct walker {
    int (*enter)(void *arg, const char *path, struct ckpt_err *err); /* before anything in the directory */
    int (*file)(void *arg, const char *path, const struct ckpt_stat *stat, struct ckpt_err *err);
    int (*leave)(void *arg, const char *path, struct ckpt_err *err);
    void *arg;
};

/* Tells the walker of the selected files and directories and of all directories above them. Errors: those of
 * ckpt_entry and of the walker. */
int walk(struct ckpt *ckpt, struct selection *selection, const struct walker *walker, struct ckpt_err *err);

#endif
