/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File names. A tensor's files share one stem: its name, escaped, and cut when it is long. Nothing is stored:
 * a name is made whenever it is asked for, and found through a hash table of numbers.
 */
#ifndef TREE_NAMES_H
#define TREE_NAMES_H

#include "catalog/catalog.h"
#include "hash/block.h"

#define SUFFIX_BYTES 4 /* ".npy", ".bin" */
#define STEM_MAX (CKPT_NAME_MAX - SUFFIX_BYTES)

extern const char *const group_folders[GROUP_COUNT]; /* "tensors", "state", "optimizer" */

/* Writes the stem (not NUL-terminated) and returns its length. */
size_t name_stem(const char *name, size_t len, char out[STEM_MAX]);
/* Likewise, of at most max (STEM_MAX or a little less) bytes. */
size_t name_stem_within(const char *name, size_t len, size_t max, char out[STEM_MAX]);
bool name_is_cut(const char *stem, size_t len); /* or was called so */

/* Stem -> tensor of one group: open addressing. A slot is 32 bits of the stem's keyed hash and the tensor's
 * number + 1; the key keeps crafted names from piling up. */
struct stems {
    const struct group *group;
    const struct block_key *key;
    uint64_t *slots;
    uint64_t mask;
};

/*
 * group and key must outlive the table. Errors: NOMEM, LIMIT (two tensors whose long names were cut to the
 * same stem: neither is hidden behind the other, the checkpoint is refused; the message names both).
 */
int stems_build(
    const struct group *group, const struct block_key *key, struct stems *ret_stems, struct ckpt_err *err);
bool stems_find(const struct stems *stems, const char *stem, size_t len, uint32_t *ret_tensor);
void stems_free(struct stems *stems);

#endif
