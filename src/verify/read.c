/* SPDX-License-Identifier: Apache-2.0 */
/* The guard's door: which bytes go out, and what is checked before they do. */
#include "base/ovf.h"
#include "verify/guard_own.h"

#include <inttypes.h>
#include <string.h>

#define SHARE_BYTES ((uint64_t)512 * 1024) /* from here on several threads hash faster than one */
#define KEEP_BYTES_MIN 4096                /* reading a smaller unit again is as cheap as looking it up */

void guard_outcome(void *arg, uint64_t index, bool holds, const uint8_t found[32]) {
    struct guard *guard = arg;
    if (holds)
        ledger_verified(guard->ledger, index, NULL);
    else
        ledger_differs(guard->ledger, index, found);
}

static int read_source(
    struct guard *guard, const struct unit *unit, uint64_t off, void *buf, size_t len, struct ckpt_err *err) {
    int rc = source_read(guard->source, off, buf, len, err);
    return rc ? pass_read_failed(unit, rc, err) : 0;
}

/* ---- blocks of large units --------------------------------------------------------------------------- */

/* Whole blocks from absolute offset off on (the unit's last one may be shorter): are they the verified ones?
 */
static int check_blocks(struct guard *guard, uint64_t index, const struct unit *unit, uint64_t off,
    const uint8_t *bytes, size_t len, struct ckpt_err *err) {
    const uint64_t *digests = ledger_blocks(guard->ledger, index);
    uint64_t bytes_each = guard->block_bytes, block = (off - unit->at.off) / bytes_each;
    for (size_t at = 0; at < len; at += bytes_each, block++) {
        size_t take = (size_t)ovf_min(bytes_each, len - at);
        if (block_digest(&guard->key, bytes + at, take) == digests[block])
            continue;
        ledger_changed(guard->ledger, index, off + at);
        return ledger_fault(guard->ledger, index, err);
    }
    return 0;
}

static int check_block(struct guard *guard, uint64_t index, const struct unit *unit,
    const struct cache_block *block, struct ckpt_err *err) {
    const struct pass_tell tell = {guard_outcome, guard};
    if (unit->at.len > SPAN_SMALL_BYTES)
        return check_blocks(guard, index, unit, block->key, block->bytes, block->len, err);
    return pass_bytes(guard->table, index, 1, block->bytes, &tell, err);
}

static int load_block(struct guard *guard, uint64_t index, const struct unit *unit, struct range at,
    bool spent, struct cache_block **ret_block, struct ckpt_err *err) {
    struct cache_block *block = cache_take(guard->cache, at.off, (size_t)at.len);
    if (!block)
        return err_set(err, CKPT_E_NOMEM, "no memory for a block of %" PRIu64 " bytes", at.len);
    int rc = read_source(guard, unit, at.off, block->bytes, block->len, err);
    if (!rc)
        rc = check_block(guard, index, unit, block, err);
    if (rc) {
        cache_release(guard->cache, block);
        return rc;
    }
    if (at.len >= KEEP_BYTES_MIN)
        cache_put(guard->cache, block, spent);
    *ret_block = block;
    return 0;
}

/* A part of one block (or of one small unit), which is read and checked as a whole. */
static int read_part(struct guard *guard, uint64_t index, const struct unit *unit, struct range at,
    uint64_t off, void *buf, size_t len, struct ckpt_err *err) {
    bool spent = off + len == at.off + at.len;
    struct cache_block *block = cache_get(guard->cache, at.off, spent);
    int rc = block ? 0 : load_block(guard, index, unit, at, spent, &block, err);
    if (rc)
        return rc;
    memcpy(buf, block->bytes + (off - at.off), len);
    cache_release(guard->cache, block);
    return 0;
}

/* From a verified large unit: whole blocks straight into buf, the parts at both ends through the cache. */
static int read_large(struct guard *guard, uint64_t index, const struct unit *unit, uint64_t off,
    uint8_t *buf, size_t len, struct ckpt_err *err) {
    uint64_t unit_end = unit->at.off + unit->at.len, end = off + len, block = guard->block_bytes;
    int rc = 0;
    for (size_t take; !rc && off < end; off += take, buf += take) {
        uint64_t start = off - (off - unit->at.off) % block;
        struct range at = {start, ovf_min(block, unit_end - start)};
        if (off == start && end - off >= at.len) {
            uint64_t whole = end == unit_end ? end : end - (end - unit->at.off) % block;
            take = (size_t)(whole - off);
            rc = read_source(guard, unit, off, buf, take, err);
            if (!rc)
                rc = check_blocks(guard, index, unit, off, buf, take, err);
        } else {
            take = (size_t)(ovf_min(end, at.off + at.len) - off);
            rc = read_part(guard, index, unit, at, off, buf, take, err);
        }
    }
    return rc;
}

/* ---- runs of small units ----------------------------------------------------------------------------- */

struct run {
    struct guard *guard;
    uint64_t first, count, group;
    const uint8_t *bytes;
    _Atomic uint64_t next; /* units that were shared out so far */
    atomic_int rc;
};

static void run_work(void *arg) {
    struct run *run = arg;
    const struct unit_table *table = run->guard->table;
    const struct pass_tell tell = {guard_outcome, run->guard};
    uint64_t begin = unit_get(table, run->first).at.off, at;
    while ((at = atomic_fetch_add(&run->next, run->group)) < run->count) {
        uint64_t index = run->first + at, count = ovf_min(run->group, run->count - at);
        const uint8_t *bytes = run->bytes + (unit_get(table, index).at.off - begin);
        int rc = pass_bytes(table, index, count, bytes, &tell, NULL);
        if (rc)
            atomic_store(&run->rc, rc);
    }
}

static int first_fault(struct guard *guard, uint64_t first, uint64_t count, struct ckpt_err *err) {
    int rc = 0;
    for (uint64_t i = first; !rc && i - first < count; i++)
        if (ledger_state(guard->ledger, i) == UNIT_CORRUPT)
            rc = ledger_fault(guard->ledger, i, err);
    return rc;
}

static int check_shared(
    struct guard *guard, uint64_t first, uint64_t count, const void *bytes, struct ckpt_err *err) {
    unsigned cores = crew_cores();
    struct run run = {.guard = guard,
        .first = first,
        .count = count,
        .group = ovf_max(count / (4 * (uint64_t)cores), 1),
        .bytes = bytes};
    crew_share(guard->crew, cores - 1, run_work, NULL, &run);
    int rc = atomic_load(&run.rc), fault = first_fault(guard, first, count, err);
    if (rc && !fault)
        return err_set(err, rc, "no memory to check %" PRIu64 " units", count);
    return fault;
}

/* Whole small units that follow each other, straight into buf: one read, each checked in place. */
static int read_run(
    struct guard *guard, uint64_t first, uint64_t count, void *buf, size_t len, struct ckpt_err *err) {
    const struct pass_tell tell = {guard_outcome, guard};
    struct unit unit = unit_get(guard->table, first);
    int rc = first_fault(guard, first, count, err);
    if (!rc)
        rc = read_source(guard, &unit, unit.at.off, buf, len, err);
    if (rc)
        return rc;
    if (count > 1 && len >= SHARE_BYTES)
        return check_shared(guard, first, count, buf, err);
    return pass_bytes(guard->table, first, count, buf, &tell, err);
}

/* ---- requests ---------------------------------------------------------------------------------------- */

struct request {
    uint64_t off;
    uint8_t *buf;
    size_t len;
    const struct ckpt_cancel *cancel;
};

/* From one large unit. *ret_take: how many bytes. */
static int serve_large(struct guard *guard, uint64_t index, const struct unit *unit,
    const struct request *request, size_t *ret_take, struct ckpt_err *err) {
    size_t take = (size_t)ovf_min(request->len, unit->at.off + unit->at.len - request->off);
    int rc = jobs_need(guard->jobs, index, JOBS_CREW, request->cancel, NULL, err);
    if (!rc)
        rc = read_large(guard, index, unit, request->off, request->buf, take, err);
    *ret_take = take;
    return rc;
}

/* From one small unit, or as many whole ones as follow. */
static int serve_small(struct guard *guard, uint64_t index, const struct unit *unit,
    const struct request *request, size_t *ret_take, struct ckpt_err *err) {
    size_t take = (size_t)ovf_min(request->len, unit->at.off + unit->at.len - request->off);
    *ret_take = take;
    if (take < unit->at.len) {
        int rc = ledger_fault(guard->ledger, index, err);
        return rc ? rc : read_part(guard, index, unit, unit->at, request->off, request->buf, take, err);
    }
    uint64_t count = span_small(guard->table, index, request->len);
    *ret_take = (size_t)span_bytes(guard->table, index, count);
    return read_run(guard, index, count, request->buf, *ret_take, err);
}

static int serve(struct guard *guard, struct request request, struct ckpt_err *err) {
    int rc = 0;
    for (size_t take = 0; !rc && request.len; request.off += take, request.buf += take, request.len -= take) {
        uint64_t index;
        if (take && pass_cancelled(request.cancel))
            return err_set(err, CKPT_E_INTR, "interrupted");
        if (!span_find(guard->table, request.off, &index))
            return err_set(err, CKPT_E_INVAL, "no digest covers the byte at offset %" PRIu64, request.off);
        if (!take)
            ahead_begin(
                &guard->ahead, guard->jobs, &guard->over, index, request.off, request.off + request.len);
        struct unit unit = unit_get(guard->table, index);
        bool large = unit.at.len > SPAN_SMALL_BYTES;
        rc = large ? serve_large(guard, index, &unit, &request, &take, err)
                   : serve_small(guard, index, &unit, &request, &take, err);
    }
    return rc;
}

int guard_read(struct guard *guard, uint64_t off, void *buf, size_t len, const struct ckpt_cancel *cancel,
    struct ckpt_err *err) {
    uint64_t end;
    if (!ovf_add(off, len, &end))
        return err_set(err, CKPT_E_INVAL, "%zu bytes at offset %" PRIu64 " are no range", len, off);
    if (!guard_idle(guard))
        return serve(guard, (struct request){off, buf, len, cancel}, err);
    int rc = source_read(guard->source, off, buf, len, err);
    if (!rc && guard->options.mode != CKPT_VERIFY_OFF)
        rc = source_unchanged(guard->source, err);
    return rc;
}
