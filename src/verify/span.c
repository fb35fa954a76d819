/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/span.h"

#include "base/ovf.h"

#include <inttypes.h>

static bool holds(struct range at, uint64_t off) {
    return off >= at.off && off - at.off < at.len;
}

bool span_find(const struct unit_table *table, uint64_t off, uint64_t *ret_index) {
    if (table->digests) {
        if (!holds((struct range){table->base, table->total}, off))
            return false;
        *ret_index = (off - table->base) / table->chunk;
        return true;
    }
    for (uint64_t i = 0; i < table->count; i++) {
        if (!holds(table->list[i].at, off))
            continue;
        *ret_index = i;
        return true;
    }
    return false;
}

static uint64_t small_chunks(const struct unit_table *table, uint64_t first, uint64_t max_bytes) {
    if (unit_get(table, first).at.len > SPAN_SMALL_BYTES)
        return 0;
    if (table->total - first * table->chunk <= max_bytes) /* the tail, too, which may be shorter */
        return table->count - first;
    return ovf_min(ovf_max(max_bytes / table->chunk, 1), table->count - first);
}

uint64_t span_small(const struct unit_table *table, uint64_t first, uint64_t max_bytes) {
    if (table->digests)
        return small_chunks(table, first, max_bytes);
    uint64_t bytes = 0, count = 0;
    for (uint64_t i = first; i < table->count; i++, count++) {
        struct range at = table->list[i].at;
        bool follows = i == first || at.off == table->list[first].at.off + bytes;
        if (at.len > SPAN_SMALL_BYTES || !follows || (count && bytes + at.len > max_bytes))
            break;
        bytes += at.len;
    }
    return count;
}

uint64_t span_bytes(const struct unit_table *table, uint64_t first, uint64_t count) {
    if (count == 0)
        return 0;
    struct range last = unit_get(table, first + count - 1).at;
    return last.off + last.len - unit_get(table, first).at.off;
}

static int check_chunks(const struct unit_table *table, uint64_t size, struct ckpt_err *err) {
    bool inside = ovf_inside(table->base, table->total, size);
    if (!inside || table->chunk == 0 ||
        table->count != table->total / table->chunk + (table->total % table->chunk != 0))
        return err_set(err, CKPT_E_INVAL,
            "%" PRIu64 " chunks of %" PRIu64 " bytes are no table for %" PRIu64 " bytes at offset %" PRIu64
            " of a source of %" PRIu64 " bytes",
            table->count, table->chunk, table->total, table->base, size);
    return 0;
}

int span_check(const struct unit_table *table, uint64_t size, uint64_t *ret_bytes, struct ckpt_err *err) {
    uint64_t bytes = table->total;
    if (table->digests && table->count) {
        int rc = check_chunks(table, size, err);
        if (rc)
            return rc;
    } else {
        bytes = 0;
        for (uint64_t i = 0; i < table->count; i++) {
            struct range at = table->list[i].at;
            if (!ovf_inside(at.off, at.len, size) || !ovf_add(bytes, at.len, &bytes))
                return err_set(err, CKPT_E_INVAL,
                    "unit %" PRIu64 " (%" PRIu64 " bytes at offset %" PRIu64
                    ") lies outside the source's %" PRIu64 " bytes",
                    i, at.len, at.off, size);
        }
    }
    *ret_bytes = bytes;
    return 0;
}
