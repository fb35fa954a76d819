/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/catalog.h"

#include "base/ovf.h"

#include <string.h>

const char *const encoding_names[ENCODING_COUNT] = {
    [ENCODING_DENSE] = "dense",
    [ENCODING_Q4] = "q4",
    [ENCODING_Q8] = "q8",
};

const struct digest_info digest_table[DIGEST_KIND_COUNT] = {
    [DIGEST_NONE] = {"none", "nothing: the format has no checksum", 0},
    [DIGEST_FNV1A64] = {"fnv1a64", "accidents", 8},
    [DIGEST_SHA256] = {"sha256",
        "accidents, and attackers once the manifest is pinned (-o manifest=sha256:...)", 32},
};

enum digest_kind catalog_digest(const struct catalog *catalog) {
    if (catalog->envelope) /* an empty payload has no chunk, but the header is hashed */
        return DIGEST_SHA256;
    return catalog->units.count ? unit_get(&catalog->units, 0).kind : DIGEST_NONE;
}

void catalog_free(struct catalog *catalog) {
    arena_free(&catalog->arena);
    *catalog = (struct catalog){.arena.max = catalog->arena.max};
}

/* No overflow: the reader made sure that base + total lies in the source and that count chunks are needed. */
static struct range chunk_range(const struct unit_table *table, uint64_t i) {
    uint64_t start = i * table->chunk;
    return (struct range){.off = table->base + start, .len = ovf_min(table->chunk, table->total - start)};
}

struct unit unit_get(const struct unit_table *table, uint64_t i) {
    if (!table->digests)
        return table->list[i];
    struct unit unit = {.at = chunk_range(table, i), .kind = DIGEST_SHA256, .index = i};
    memcpy(unit.digest, table->digests[i], sizeof unit.digest);
    return unit;
}

struct range tensor_range(const struct catalog *catalog, const struct tensor *tensor) {
    return (struct range){.off = catalog->parts[tensor->part].base + tensor->offset, .len = tensor->size};
}
