/* SPDX-License-Identifier: Apache-2.0 */
/* What the guard's files share; nobody else includes it. */
#ifndef VERIFY_GUARD_OWN_H
#define VERIFY_GUARD_OWN_H

#include "base/crew.h"
#include "hash/block.h"
#include "verify/ahead.h"
#include "verify/cache.h"
#include "verify/guard.h"
#include "verify/jobs.h"
#include "verify/ledger.h"
#include "verify/pass.h"
#include "verify/span.h"

#include <pthread.h>
#include <stdatomic.h>

_Static_assert(SPAN_SMALL_BYTES <= GUARD_BLOCK_BYTES, "a small unit fits a cached block");

struct guard {
    struct source *source;
    const struct unit_table *table;
    struct witness *witness; /* NULL: nothing was witnessed */
    struct guard_options options;
    struct block_key key;
    uint64_t block_bytes;
    struct ledger *ledger;
    struct cache *cache;
    struct crew *crew;
    struct jobs_over over;
    struct jobs *jobs;
    struct ahead ahead;

    pthread_mutex_t lock; /* guards the list of ranges that were vouched for */
    struct range *vouched;
    size_t vouched_count, vouched_cap;

    bool background; /* its thread was started; these four belong to background.c */
    pthread_t thread;
    atomic_bool stopping;
    pthread_mutex_t rest_lock;
    pthread_cond_t rest;
};

/* Nothing is to be checked: there are no digests, or the user said so. */
static inline bool guard_idle(const struct guard *guard) {
    return guard->options.mode == CKPT_VERIFY_OFF || guard->table->count == 0;
}

/* Enters the outcome of a small unit (a pass_tell over the guard). */
void guard_outcome(void *guard, uint64_t index, bool holds, const uint8_t found[32]);

/* Small units [first, first + count) that follow each other; as sweep_small, known ones need no reading. */
int guard_check_small(struct guard *guard, uint64_t first, uint64_t count, void *scratch, uint64_t *ret_bad,
    struct ckpt_err *err);

int background_start(struct guard *guard, struct ckpt_err *err);
void background_stop(struct guard *guard);

#endif
