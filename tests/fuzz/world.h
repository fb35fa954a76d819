/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint in memory, opened lazily and laid out as a tree, and the walk over it. */
#ifndef TESTS_FUZZ_WORLD_H
#define TESTS_FUZZ_WORLD_H

#include "fuzz.h"
#include "tree/tree.h"
#include "verify/guard.h"
#include "verify/witness.h"

struct world {
    struct source *source;
    struct witness *witness;
    struct catalog catalog;
    struct guard *guard;
    struct tree *tree;
    bool sound; /* the strict reader accepts it: every read has to succeed */
};

/* False when it is no checkpoint; close it in any case. The bytes outlive the world. */
bool world_open(struct world *ret_world, const uint8_t *data, size_t size);
void world_close(struct world *world);

/* Visits every node, checks that the tree is one, and calls `file` for each file. */
typedef void world_file(struct world *world, const struct ckpt_dirent *entry, void *arg);
void world_walk(struct world *world, world_file *file, void *arg);

/* What a content of that name must be: JSON, an .npy file, a safetensors file. Files longer than len bytes
 * are not judged. */
void world_file_holds(const char *name, const uint8_t *bytes, size_t len, uint64_t size);

#endif
