/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/records.h"

#include <string.h>

static int read_extents(struct json *json, struct buf *extents, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    uint64_t extent;
    if (event != JSON_ARRAY)
        return json_wanted(json, event, "an array of extents", err);
    while ((event = json_next(json)) == JSON_NUMBER && json_u64(json, &extent))
        buf_put(extents, &extent, sizeof extent);
    return event == JSON_ARRAY_END ? 0 : json_wanted(json, event, "an extent (0 to 2^64 - 1)", err);
}

int record_shape(struct json *json, struct arena *arena, struct model_tensor *item, struct ckpt_err *err) {
    struct buf extents = {0};
    int rc = read_extents(json, &extents, err);
    uint64_t *shape = rc || extents.failed ? NULL : arena_alloc(arena, 1, extents.len + 1);
    if (!rc && !shape)
        rc = err_set(err, CKPT_E_NOMEM, "no memory for %zu bytes of extents", extents.len);
    if (!rc) {
        if (extents.len)
            memcpy(shape, extents.bytes, extents.len);
        item->tensor.shape = shape;
        item->tensor.rank = (uint32_t)(extents.len / sizeof *shape);
    }
    buf_free(&extents);
    return rc;
}
