/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/views.h"

#include <stdlib.h>
#include <string.h>

static const char metadata[] = "{\"format\":\"pt\"}";

int export_new(
    const struct catalog *catalog, enum group_kind group, struct export **ret_export, struct ckpt_err *err) {
    struct export *export = calloc(1, sizeof *export);
    if (!export)
        return err_set(err, CKPT_E_NOMEM, "no memory for an export");
    export->catalog = catalog;
    const struct group *items = &catalog->groups[group];
    int rc = outline_make(&export->outline, items->items, items->count, metadata, strlen(metadata), err);
    if (rc)
        export_free(export);
    else
        *ret_export = export;
    return rc;
}

void export_free(struct export *export) {
    if (!export)
        return;
    outline_free(&export->outline);
    free(export);
}

struct segment export_segment(const struct export *export, uint64_t offset) {
    const struct outline *outline = &export->outline;
    uint64_t head = outline_header_bytes(outline), low = 0, high = outline->count;
    while (high - low > 1) { /* data[low] <= offset - head < data[high]: empty tensors are passed over */
        uint64_t middle = low + (high - low) / 2;
        if (outline->data[middle] <= offset - head)
            low = middle;
        else
            high = middle;
    }
    const struct tensor *tensor = &outline->items[outline->order[low]];
    struct segment segment = {.kind = tensor->encoding == ENCODING_DENSE ? SEGMENT_RANGE : SEGMENT_VALUES,
        .at = head + outline->data[low],
        .len = outline->data[low + 1] - outline->data[low],
        .off = tensor_range(export->catalog, tensor).off};
    if (segment.kind == SEGMENT_VALUES)
        segment.of.tensor = tensor;
    return segment;
}
