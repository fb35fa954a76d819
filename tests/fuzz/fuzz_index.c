/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a sharded set: its map alone, and as a whole with two shards, "a" and "b". */
#include "fuzz.h"

#include "format/index.h"

/* Returns how many tensors are mapped; -1 when the index is refused. */
static int64_t read_map(const uint8_t *data, size_t size) {
    struct index_map map;
    struct ckpt_err err = {0};
    struct source *source = fuzz_source(data, size);
    int rc = index_map_read(source, &map, &err);
    fuzz_error_holds(rc, &err);
    for (size_t i = 1; !rc && i < map.count; i++)
        HOLDS(mapping_compare(&map.list[i - 1], &map.list[i]) < 0);
    int64_t count = rc ? -1 : (int64_t)map.count;
    index_map_free(&map);
    source_close(source);
    return count;
}

static void set_holds(struct source *source, const struct catalog *catalog, int64_t mapped) {
    const struct group *group = &catalog->groups[GROUP_TENSORS];
    HOLDS(source->size == catalog->source_bytes && (int64_t)group->count == mapped);
    fuzz_catalog_holds(catalog);
    for (uint64_t i = 0; i < group->count; i++) {
        struct range at = tensor_range(catalog, &group->items[i]);
        char bytes[2], first = group->items[i].name[1] == '0' ? 1 : 3;
        HOLDS(at.len == sizeof bytes && !source_read(source, at.off, bytes, sizeof bytes, NULL));
        HOLDS(bytes[0] == first && bytes[1] == first + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct catalog catalog = {0};
    struct ckpt_err err = {0};
    struct fuzz_court court = {.catalog = &catalog};
    const struct unit_judge judge = fuzz_judge(&court);
    struct source *source = fuzz_source(data, size);
    int64_t mapped = read_map(data, size);
    int rc = format_index.parse(&source, 0, &judge, &catalog, &err);
    fuzz_error_holds(rc, &err);
    if (!rc)
        set_holds(source, &catalog, mapped);
    source_close(source);
    catalog_free(&catalog);
    return 0;
}
