/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors reader: what it accepts is filled by its tensors, each byte once. */
#include "fuzz.h"

static void fills(const struct catalog *catalog) {
    const struct group *group = &catalog->groups[GROUP_TENSORS];
    uint64_t bytes = catalog->head.len;
    for (uint64_t i = 0; i < group->count; i++)
        bytes += group->items[i].size;
    HOLDS(bytes == catalog->source_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct catalog catalog;
    if (!fuzz_parse(&format_safetensors, data, size, false, &catalog))
        fills(&catalog);
    catalog_free(&catalog);
    return 0;
}
