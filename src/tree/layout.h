/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files there are. What a checkpoint has few of are nodes in an array. What it may have millions of
 * (tensors' files, chunks) are spans: runs of consecutive inodes in one directory, computed and never stored.
 * Inodes: 1 to node_count the nodes (a directory's children are consecutive), then span after span.
 */
#ifndef TREE_LAYOUT_H
#define TREE_LAYOUT_H

#include "catalog/catalog.h"
#include "tree/device.h"

enum content {
    CONTENT_DIR,
    CONTENT_DOCUMENT, /* number: index into catalog.documents */
    CONTENT_BLOB,     /* number: index into catalog.blobs */
    CONTENT_CHECKPOINT,
    CONTENT_TENSORS_JSON,
    CONTENT_VERIFY,
    CONTENT_EXPORT, /* group */
    CONTENT_ENVELOPE,
    CONTENT_HEADER,
    CONTENT_PAYLOAD,
    CONTENT_SUMS,
    CONTENT_DEVICE,
    CONTENT_NPY,       /* in spans from here on: group; number: the tensor */
    CONTENT_RAW,       /* likewise */
    CONTENT_CHUNK,     /* number: the chunk */
    CONTENT_ON_DEVICE, /* as NPY */
};

#define NO_SPAN UINT32_MAX
#define SPANS_MAX (2 * GROUP_COUNT + 2)
#define LAYOUT_INODES_MAX ((uint64_t)1 << 31)

struct node {
    const char *name; /* name_len bytes; the catalog's or a literal */
    uint32_t name_len;
    uint32_t parent; /* index of the directory; the root is its own */
    enum content content;
    enum group_kind group;
    uint32_t number;
    uint32_t first_child, children; /* directories: nodes in them */
    uint32_t folders;               /* how many of those are directories */
    uint32_t span;                  /* the span in this directory, or NO_SPAN */
};

struct span {
    enum content content;
    enum group_kind group;
    uint32_t dir;   /* index of the directory's node */
    uint64_t first; /* inode of the first file */
    uint64_t count;
    uint32_t *members; /* ascending numbers of the tensors that have such a file; NULL: all do */
};

struct layout {
    struct node *nodes;
    uint32_t node_count;
    struct span spans[SPANS_MAX];
    uint32_t span_count;
    uint64_t total; /* inodes */
};

/* What an inode is. */
struct ref {
    uint64_t ino;
    uint32_t dir; /* index of the directory that holds it */
    enum content content;
    enum group_kind group;
    uint64_t number;
    const struct node *node; /* NULL in spans */
};

/* device NULL: no gpu/. Errors: NOMEM, LIMIT (too many files; a tensor whose view would pass 2^63 bytes; two
 * files of one path). */
int layout_build(const struct catalog *catalog, const struct tree_device *device, struct layout *ret_layout,
    struct ckpt_err *err);
void layout_free(struct layout *layout);

/* False when ino is no inode. */
bool layout_ref(const struct layout *layout, uint64_t ino, struct ref *ret_ref);
/* Inode of the span's file for tensor or chunk `number`; 0 when there is none. */
uint64_t span_inode(const struct span *span, uint64_t number);

#endif
