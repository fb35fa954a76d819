/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes over large units that are under way: one for each unit, whatever the number of those who wait.
 * A pass that nobody waits for any more stops, and goes on where it stopped when somebody asks again.
 *
 * Threads: every call from any thread. A cancel is asked on the caller's thread, outside of all locks.
 */
#ifndef VERIFY_JOBS_H
#define VERIFY_JOBS_H

#include "base/crew.h"
#include "hash/block.h"
#include "verify/ledger.h"

struct jobs;

struct jobs_over {
    struct source *source;
    const struct unit_table *table;
    const struct block_key *key;
    uint64_t block_bytes; /* of which digests are kept */
    struct ledger *ledger;
    struct crew *crew;
};

/* What `over` points to outlives the jobs. Errors: NOMEM. */
int jobs_new(const struct jobs_over *over, struct jobs **ret_jobs, struct ckpt_err *err);
void jobs_stop(struct jobs *jobs); /* every pass ends soon; then the crew is freed, then the jobs */
void jobs_free(struct jobs *jobs); /* NULL is allowed */

enum jobs_where { JOBS_CREW, JOBS_HERE };

/*
 * Returns once the large unit is known: 0 when it is verified, else the error of its mismatch, or another one
 * after which it is as unknown as before (INTR, IO, NOMEM, CORRUPT when the source ended).
 * HERE: the caller's thread makes the pass, unless another one does already; progress (NULL allowed) is told.
 */
int jobs_need(struct jobs *jobs, uint64_t index, enum jobs_where where, const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress, struct ckpt_err *err);

/* Begins the pass of a unit that will be needed soon. */
void jobs_begin(struct jobs *jobs, uint64_t index);

/*
 * As jobs_need HERE on a thread of low priority: gives way as soon as somebody needs the unit. INTR then, and
 * when the pass is another's.
 */
int jobs_idle(struct jobs *jobs, uint64_t index, const struct ckpt_cancel *cancel, struct ckpt_err *err);

#endif
