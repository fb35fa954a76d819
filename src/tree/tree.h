/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree: a catalog as directories and files. Inodes are consecutive and immutable; the files of tensors
 * and chunks, of which there may be millions, are computed from their numbers. Each file is a list of
 * segments. Knows nothing of FUSE. Semantics of the calls are those of ckptfs.h.
 */
#ifndef TREE_TREE_H
#define TREE_TREE_H

#include "catalog/catalog.h"
#include "tree/device.h"
#include "verify/guard.h"

struct tree;
struct tree_file;

/*
 * catalog (complete: the envelope's manifest too), guard and device (NULL: no gpu/) must outlive the tree.
 * Reads nothing. Errors:
 * NOMEM, IO (no random key), LIMIT (over 2^31 files, a view over 2^63 bytes, two tensors with one file name;
 * names them).
 */
int tree_new(const struct catalog *catalog, struct guard *guard, const struct tree_device *device,
    struct tree **ret_tree, struct ckpt_err *err);
void tree_free(struct tree *tree);

uint64_t tree_count(const struct tree *tree);
int tree_stat(struct tree *tree, uint64_t ino, struct ckpt_stat *ret_stat, struct ckpt_err *err);
int tree_lookup(
    struct tree *tree, uint64_t dir, const char *name, struct ckpt_stat *ret_stat, struct ckpt_err *err);
int tree_entry(
    struct tree *tree, uint64_t dir, uint64_t index, struct ckpt_dirent *ret_entry, struct ckpt_err *err);

int tree_open(struct tree *tree, uint64_t ino, struct tree_file **ret_file, const struct ckpt_cancel *cancel,
    struct ckpt_err *err);
void tree_close(struct tree_file *file);
uint64_t tree_file_size(const struct tree_file *file);
int tree_read(struct tree_file *file, uint64_t offset, void *buf, size_t len, size_t *ret_len,
    const struct ckpt_cancel *cancel, struct ckpt_err *err);

int tree_xattr_get(struct tree *tree, uint64_t ino, const char *name, char *buf, size_t cap, size_t *ret_len,
    struct ckpt_err *err);
int tree_xattr_list(
    struct tree *tree, uint64_t ino, char *buf, size_t cap, size_t *ret_len, struct ckpt_err *err);

/* A tensor's file name (NUL-terminated) with the suffix ".npy", ".bin" or ".json": percent-escaped, and cut
 * when long. */
void tree_file_name(const char *name, size_t len, const char *suffix, char out[CKPT_NAME_MAX + 1]);

#endif
