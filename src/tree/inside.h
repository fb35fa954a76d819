/* SPDX-License-Identifier: Apache-2.0 */
/* The tree's own parts, shared by its files. */
#ifndef TREE_INSIDE_H
#define TREE_INSIDE_H

#include "tree/layout.h"
#include "tree/names.h"
#include "tree/tree.h"
#include "tree/views.h"

#include <pthread.h>

struct tree {
    const struct catalog *catalog;
    struct guard *guard;
    const struct tree_device *device; /* NULL: there is no gpu/ */
    struct layout layout;
    struct block_key key; /* of the tables below, which point to it */
    struct stems stems[GROUP_COUNT];
    char *checkpoint, *envelope; /* texts; envelope NULL without one */
    struct rows sums;

    /* Made when they are first asked for, then immutable. */
    pthread_mutex_t lock;     /* of the making */
    struct rows tensors_json; /* starts NULL: not made yet */
    struct export *exports[GROUP_COUNT];
};

/* What a file holds: segments at hand, then rows, then an export's data. */
struct view {
    uint64_t size;
    struct segment parts[2];
    unsigned count;
    const struct rows *rows;
    const struct export *export;
    char *owned;                      /* freed by view_done */
    const struct tree_device *device; /* of hold */
    void *hold;                       /* let go by view_done, when not NULL */
    /* What must be vouched for before a byte leaves: what the content was derived from. */
    struct range vouch[2];
    /* Parsing failed and the bytes are to blame: reads fail with the guard's error for this range. */
    bool damaged;
    struct range blame;
};

/* Errors: NOENT. */
int tree_ref(const struct tree *tree, uint64_t ino, struct ref *ret_ref, struct ckpt_err *err);
const struct tensor *tree_tensor(const struct tree *tree, const struct ref *ref);
/* The source range that the file shows; len 0 when it shows none. */
struct range tree_range(const struct tree *tree, const struct ref *ref);

/* What the file's name, shape and place were parsed from: the head of the file, and the index or document
 * (left untouched where there is none). */
void tree_vouchers(const struct tree *tree, const struct ref *ref, struct range vouch[2]);

/* Only for files. Errors: NOMEM, LIMIT; below gpu/ those of struct tree_device, whose calls may take long and
 * are all that asks cancel (NULL: never). */
int view_make(struct tree *tree, const struct ref *ref, struct view *ret_view,
    const struct ckpt_cancel *cancel, struct ckpt_err *err);
void view_done(struct view *view);

#endif
