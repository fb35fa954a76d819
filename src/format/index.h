/* SPDX-License-Identifier: Apache-2.0 */
/* The map of a sharded set: which tensor is in which file. */
#ifndef FORMAT_INDEX_H
#define FORMAT_INDEX_H

#include "base/arena.h"
#include "source/source.h"

struct index_text {
    const char *bytes; /* and a NUL */
    uint32_t len;
};

struct mapping {
    struct index_text shard, name;
    bool found; /* for the reader of the shards */
};

struct index_map {
    struct mapping *list; /* by shard, then by name */
    size_t count, cap;
    struct arena texts;
    const char *metadata; /* the text of the index's metadata, "{}" without one; in texts */
    size_t metadata_len;
    bool mapped; /* there is a weight_map */
};

int mapping_compare(const void *a, const void *b);

/* Reads an index whole; free the map in any case. Errors: FORMAT, CORRUPT, LIMIT, IO, CHANGED, NOMEM. */
int index_map_read(struct source *source, struct index_map *map, struct ckpt_err *err);
void index_map_free(struct index_map *map);

#endif
