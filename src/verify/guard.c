/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/guard.h"

#include "base/ovf.h"
#include "base/tick.h"
#include "verify/guard_own.h"

#include <stdlib.h>

#define CACHE_DEFAULT ((uint64_t)64 << 20)
#define CACHE_SHARE 4   /* of cache_bytes, for blocks */
#define DIGESTS_SHARE 8 /* of cache_bytes, for block digests */
#define WORKERS_MIN 4   /* one long section must not keep the others waiting */

static unsigned workers(void) {
    unsigned cores = crew_cores();
    return cores < WORKERS_MIN ? WORKERS_MIN : cores;
}

/* The finest blocks whose digests, all of them, stay within their share. */
static uint64_t block_bytes_for(uint64_t source_bytes, uint64_t cache_bytes) {
    uint64_t bytes = GUARD_BLOCK_BYTES;
    while (bytes < GUARD_BLOCK_BYTES_MAX &&
           source_bytes / bytes > cache_bytes / DIGESTS_SHARE / sizeof(uint64_t))
        bytes *= 2;
    return bytes;
}

static int furnish(struct guard *guard, struct ckpt_err *err) {
    uint64_t cache_bytes = guard->options.cache_bytes ? guard->options.cache_bytes : CACHE_DEFAULT;
    guard->block_bytes = block_bytes_for(guard->source->size, cache_bytes);
    uint64_t cache_blocks = ovf_min(cache_bytes / CACHE_SHARE, guard->source->size) / guard->block_bytes + 1;
    int rc = block_key_new(&guard->key, err);
    if (!rc)
        rc = ledger_new(guard->table, guard->source->size, &guard->options.log, &guard->ledger, err);
    if (!rc)
        rc = cache_new(guard->block_bytes, cache_blocks, &guard->cache, err);
    if (!rc)
        rc = crew_new(workers(), &guard->crew, err);
    if (!rc)
        crew_give_way(guard->crew);
    guard->ahead.reach_max = AHEAD_CORE_BYTES * crew_cores();
    guard->over = (struct jobs_over){
        guard->source, guard->table, &guard->key, guard->block_bytes, guard->ledger, guard->crew};
    if (!rc)
        rc = jobs_new(&guard->over, &guard->jobs, err);
    return rc;
}

int guard_new(struct source *source, const struct unit_table *units, struct witness *witness,
    const struct guard_options *options, struct guard **ret_guard, struct ckpt_err *err) {
    struct guard *guard = calloc(1, sizeof *guard);
    if (!guard)
        return err_set(err, CKPT_E_NOMEM, "no memory for the guard");
    guard->source = source;
    guard->table = units;
    guard->witness = witness;
    guard->options = *options;
    pthread_mutex_init(&guard->lock, NULL);
    pthread_mutex_init(&guard->rest_lock, NULL);
    tick_cond_init(&guard->rest);
    int rc = furnish(guard, err);
    if (rc) {
        guard_free(guard);
        return rc;
    }
    *ret_guard = guard;
    return 0;
}

void guard_free(struct guard *guard) {
    if (!guard)
        return;
    background_stop(guard);
    if (guard->jobs)
        jobs_stop(guard->jobs);
    crew_free(guard->crew);
    jobs_free(guard->jobs);
    cache_free(guard->cache);
    ledger_free(guard->ledger);
    free(guard->vouched);
    pthread_cond_destroy(&guard->rest);
    pthread_mutex_destroy(&guard->rest_lock);
    pthread_mutex_destroy(&guard->lock);
    free(guard);
}

int guard_start(struct guard *guard, struct ckpt_err *err) {
    bool wanted = guard->options.mode == CKPT_VERIFY_BACKGROUND && !guard_idle(guard);
    return wanted && !guard->background ? background_start(guard, err) : 0;
}

/* ---- what is known ----------------------------------------------------------------------------------- */

void guard_tally(struct guard *guard, struct guard_tally *ret_tally) {
    ledger_tally(guard->ledger, ret_tally);
}

enum unit_state guard_unit_state(struct guard *guard, uint64_t unit) {
    return ledger_state(guard->ledger, unit);
}

bool guard_unit_found(struct guard *guard, uint64_t unit, uint8_t digest[32]) {
    return ledger_found(guard->ledger, unit, digest);
}

bool guard_corrupt_unit(struct guard *guard, uint64_t n, uint64_t *ret_unit) {
    return ledger_corrupt(guard->ledger, n, ret_unit);
}

enum ckpt_verify_mode guard_mode(const struct guard *guard) {
    return guard->options.mode;
}

const struct unit_table *guard_units(const struct guard *guard) {
    return guard->table;
}

static enum unit_state worse(enum unit_state a, enum unit_state b) {
    if (a == UNIT_CORRUPT || b == UNIT_CORRUPT)
        return UNIT_CORRUPT;
    return a == UNIT_UNKNOWN || b == UNIT_UNKNOWN ? UNIT_UNKNOWN : UNIT_VERIFIED;
}

/* Bytes that a unit and a range have in common. */
static uint64_t common(struct range a, struct range b) {
    uint64_t start = ovf_max(a.off, b.off);
    uint64_t after_a = a.off + a.len, after_b = b.off + b.len;
    uint64_t end = ovf_min(after_a, after_b);
    return end > start ? end - start : 0;
}

/* The units that may touch the range: a few of a list, or the chunks from its start on. */
static uint64_t first_candidate(const struct unit_table *table, struct range range) {
    uint64_t first = 0;
    if (table->digests && range.off >= table->base && !span_find(table, range.off, &first))
        first = table->count;
    return first;
}

enum unit_state guard_range_state(struct guard *guard, struct range range) {
    const struct unit_table *table = guard->table;
    enum unit_state state = UNIT_VERIFIED;
    uint64_t covered = 0, end;
    if (guard_idle(guard) || !ovf_add(range.off, range.len, &end))
        return UNIT_UNKNOWN;
    for (uint64_t i = first_candidate(table, range); i < table->count && covered < range.len; i++) {
        struct range at = unit_get(table, i).at;
        uint64_t shared = common(at, range);
        if (shared)
            state = worse(state, ledger_state(guard->ledger, i));
        else if (table->digests)
            break;
        covered += shared;
    }
    return covered < range.len ? worse(state, UNIT_UNKNOWN) : state;
}
