/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/sweep.h"

#include "base/crew.h"
#include "base/ovf.h"
#include "source/source.h"
#include "verify/pass.h"
#include "verify/span.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct sweep {
    const struct unit_table *table;
    bool keep_going;
    sweep_check *check;
    void *arg;
    const struct ckpt_cancel *cancel;
    const struct ckpt_progress *progress;
    uint64_t total;
    pthread_t caller;
    atomic_bool cancelled;
    _Atomic uint64_t done;
    _Atomic uint64_t bad; /* index of the first bad unit so far; UINT64_MAX: none */
    pthread_mutex_t lock; /* guards what follows, and changes of bad */
    uint64_t next;
    int rc;
    struct ckpt_err err; /* of the unit `bad` */
};

/* One thread's part. */
struct sweeper {
    struct sweep *sweep;
    uint64_t first, count; /* the span in hand */
    uint64_t told;         /* bytes of it that are in sweep->done */
};

static bool take_span(struct sweeper *sweeper) {
    struct sweep *sweep = sweeper->sweep;
    pthread_mutex_lock(&sweep->lock);
    bool over = sweep->next == sweep->table->count || atomic_load(&sweep->cancelled) ||
                (sweep->rc && !sweep->keep_going);
    if (!over) {
        uint64_t small = span_small(sweep->table, sweep->next, SWEEP_SPAN_BYTES);
        *sweeper = (struct sweeper){.sweep = sweep, .first = sweep->next, .count = ovf_max(small, 1)};
        sweep->next += sweeper->count;
    }
    pthread_mutex_unlock(&sweep->lock);
    return !over;
}

/* What comes after a fault in table order is of no interest any more. */
static bool sweeper_asked(void *arg) {
    struct sweeper *sweeper = arg;
    struct sweep *sweep = sweeper->sweep;
    if (pthread_equal(pthread_self(), sweep->caller) && pass_cancelled(sweep->cancel))
        atomic_store(&sweep->cancelled, true);
    return atomic_load(&sweep->cancelled) ||
           (!sweep->keep_going && sweeper->first > atomic_load(&sweep->bad));
}

static void sweeper_tell(void *arg, uint64_t done, uint64_t total) {
    struct sweeper *sweeper = arg;
    (void)total;
    if (done <= sweeper->told)
        return;
    atomic_fetch_add(&sweeper->sweep->done, done - sweeper->told);
    sweeper->told = done;
}

static void note_bad(struct sweep *sweep, uint64_t index, int rc, const struct ckpt_err *err) {
    pthread_mutex_lock(&sweep->lock);
    if (!sweep->rc || index < atomic_load(&sweep->bad)) {
        sweep->rc = rc;
        sweep->err = *err;
        atomic_store(&sweep->bad, index);
    }
    pthread_mutex_unlock(&sweep->lock);
}

static void sweeper_run(void *arg) {
    struct sweep *sweep = arg;
    struct sweeper sweeper = {.sweep = sweep};
    const struct ckpt_cancel cancel = {sweeper_asked, &sweeper};
    const struct ckpt_progress progress = {sweeper_tell, &sweeper};
    struct ckpt_err err = {0};
    void *scratch = malloc(SWEEP_SPAN_BYTES);
    if (!scratch)
        note_bad(sweep, 0, err_set(&err, CKPT_E_NOMEM, "no memory to check units"), &err);
    while (scratch && take_span(&sweeper)) {
        uint64_t bad = sweeper.first;
        int rc =
            sweep->check(sweep->arg, sweeper.first, sweeper.count, scratch, &bad, &cancel, &progress, &err);
        if (rc && rc != CKPT_E_INTR)
            note_bad(sweep, bad, rc, &err);
        sweeper_tell(&sweeper, span_bytes(sweep->table, sweeper.first, sweeper.count), 0);
    }
    free(scratch);
}

static void tick(void *arg) {
    struct sweep *sweep = arg;
    if (pass_cancelled(sweep->cancel))
        atomic_store(&sweep->cancelled, true);
    if (sweep->progress && sweep->progress->tell)
        sweep->progress->tell(sweep->progress->arg, atomic_load(&sweep->done), sweep->total);
}

static int sweep_with(struct sweep *sweep, struct ckpt_err *err) {
    struct crew *crew;
    unsigned hands = (unsigned)ovf_min(crew_cores(), ovf_max(sweep->table->count, 1));
    int rc = crew_new(hands, &crew, err);
    if (rc)
        return rc;
    crew_share(crew, hands, sweeper_run, tick, sweep);
    crew_free(crew);
    if (atomic_load(&sweep->cancelled))
        return err_set(err, CKPT_E_INTR, "interrupted");
    tick(sweep);
    if (sweep->rc && err)
        *err = sweep->err;
    return sweep->rc;
}

int sweep_table(const struct unit_table *table, bool keep_going, sweep_check *check, void *arg,
    const struct ckpt_cancel *cancel, const struct ckpt_progress *progress, struct ckpt_err *err) {
    struct sweep sweep = {.table = table,
        .keep_going = keep_going,
        .check = check,
        .arg = arg,
        .cancel = cancel,
        .progress = progress,
        .caller = pthread_self(),
        .bad = UINT64_MAX};
    int rc = span_check(table, UINT64_MAX, &sweep.total, err);
    if (rc)
        return rc;
    pthread_mutex_init(&sweep.lock, NULL);
    rc = sweep_with(&sweep, err);
    pthread_mutex_destroy(&sweep.lock);
    return rc;
}

/* ---- small units ------------------------------------------------------------------------------------- */

struct small {
    struct source *source;
    const struct unit_table *table;
    const struct pass_tell *tell;
    uint64_t bad; /* the first bad unit; UINT64_MAX: none */
};

static void small_outcome(void *arg, uint64_t index, bool holds, const uint8_t found[32]) {
    struct small *small = arg;
    if (!holds && small->bad == UINT64_MAX)
        small->bad = index;
    if (small->tell)
        small->tell->outcome(small->tell->arg, index, holds, found);
}

static int judge_small(
    struct small *small, uint64_t first, uint64_t count, const void *bytes, struct ckpt_err *err) {
    const struct pass_tell tell = {small_outcome, small};
    return pass_bytes(small->table, first, count, bytes, &tell, err);
}

static int read_small(
    struct small *small, uint64_t first, uint64_t count, void *scratch, struct ckpt_err *err) {
    struct unit unit = unit_get(small->table, first);
    int rc =
        source_read(small->source, unit.at.off, scratch, (size_t)span_bytes(small->table, first, count), err);
    return rc ? pass_read_failed(&unit, rc, err) : 0;
}

static int one_by_one(
    struct small *small, uint64_t first, uint64_t count, void *scratch, struct ckpt_err *err) {
    int bad = 0;
    for (uint64_t i = first; i - first < count; i++) {
        int rc = read_small(small, i, 1, scratch, bad ? NULL : err);
        if (rc && small->bad == UINT64_MAX)
            small->bad = i;
        if (!rc)
            rc = judge_small(small, i, 1, scratch, bad ? NULL : err);
        bad = bad ? bad : rc;
    }
    return bad;
}

/* A read that failed as a whole says nothing about the units beside the bad spot: one by one then. */
int sweep_small(struct source *source, const struct unit_table *table, uint64_t first, uint64_t count,
    void *scratch, const struct pass_tell *tell, uint64_t *ret_bad, struct ckpt_err *err) {
    struct small small = {.source = source, .table = table, .tell = tell, .bad = UINT64_MAX};
    int rc = read_small(&small, first, count, scratch, NULL);
    rc =
        rc ? one_by_one(&small, first, count, scratch, err) : judge_small(&small, first, count, scratch, err);
    if (rc)
        *ret_bad = small.bad == UINT64_MAX ? first : small.bad;
    return rc;
}

/* ---- a table without a guard ------------------------------------------------------------------------- */

struct bare {
    struct source *source;
    const struct unit_table *table;
};

static int bare_check(void *arg, uint64_t first, uint64_t count, void *scratch, uint64_t *ret_bad,
    const struct ckpt_cancel *cancel, const struct ckpt_progress *progress, struct ckpt_err *err) {
    struct bare *bare = arg;
    struct unit unit = unit_get(bare->table, first);
    uint8_t found[32];
    if (unit.at.len <= SPAN_SMALL_BYTES)
        return sweep_small(bare->source, bare->table, first, count, scratch, NULL, ret_bad, err);
    *ret_bad = first;
    return pass_unit(bare->source, &unit, NULL, found, cancel, progress, err);
}

int pass_table(struct source *source, const struct unit_table *table, const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress, struct ckpt_err *err) {
    struct bare bare = {source, table};
    return sweep_table(table, false, bare_check, &bare, cancel, progress, err);
}
