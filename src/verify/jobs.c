/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/jobs.h"

#include "base/tick.h"
#include "verify/pass.h"

#include <stdatomic.h>
#include <stdlib.h>

enum job_state { JOB_PAUSED, JOB_RUNNING, JOB_DONE };

/* In the list until it is done; freed by the last one who looks at it then. */
struct job {
    struct crew_task task; /* first, so that one pointer is the other */
    struct jobs *jobs;
    struct job *next;
    uint64_t index;
    struct pass pass; /* the running thread's own, as blocks is */
    uint64_t *blocks;
    bool begun;
    atomic_bool stop;
    enum job_state state; /* under the lock, as all that follows */
    unsigned waiters;
    bool idle; /* runs at low priority: a waiter stops it and has it go on elsewhere */
    int rc;
    struct ckpt_err err;
    pthread_cond_t moved; /* the state changed */
};

struct jobs {
    struct jobs_over over;
    pthread_mutex_t lock;
    struct job *list;
};

int jobs_new(const struct jobs_over *over, struct jobs **ret_jobs, struct ckpt_err *err) {
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs)
        return err_set(err, CKPT_E_NOMEM, "no memory for passes");
    jobs->over = *over;
    pthread_mutex_init(&jobs->lock, NULL);
    *ret_jobs = jobs;
    return 0;
}

static void job_free(struct job *job) {
    if (job->begun)
        pass_end(&job->pass);
    free(job->blocks);
    pthread_cond_destroy(&job->moved);
    free(job);
}

void jobs_stop(struct jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    for (struct job *job = jobs->list; job; job = job->next)
        atomic_store(&job->stop, true);
    pthread_mutex_unlock(&jobs->lock);
}

void jobs_free(struct jobs *jobs) {
    if (!jobs)
        return;
    while (jobs->list) {
        struct job *job = jobs->list;
        jobs->list = job->next;
        job_free(job);
    }
    pthread_mutex_destroy(&jobs->lock);
    free(jobs);
}

/* ---- the list (under the lock) ----------------------------------------------------------------------- */

static struct job *job_find(struct jobs *jobs, uint64_t index) {
    struct job *job = jobs->list;
    while (job && job->index != index)
        job = job->next;
    return job;
}

static struct job *job_of(struct jobs *jobs, uint64_t index) {
    struct job *job = job_find(jobs, index);
    if (job || !(job = calloc(1, sizeof *job)))
        return job;
    job->jobs = jobs;
    job->index = index;
    tick_cond_init(&job->moved);
    job->next = jobs->list;
    jobs->list = job;
    return job;
}

static void job_unlist(struct job *job) {
    struct job **at = &job->jobs->list;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
}

/* ---- the pass (outside of the lock) ------------------------------------------------------------------ */

static void keep_block(void *arg, uint64_t index, const void *bytes, size_t len) {
    struct job *job = arg;
    job->blocks[index] = block_digest(job->jobs->over.key, bytes, len);
}

static int job_begin(struct job *job, struct ckpt_err *err) {
    const struct jobs_over *over = &job->jobs->over;
    struct unit unit = unit_get(over->table, job->index);
    const struct pass_sink sink = {over->block_bytes, keep_block, job};
    if (!job->blocks)
        job->blocks = calloc((size_t)((unit.at.len - 1) / over->block_bytes + 1), sizeof *job->blocks);
    if (!job->blocks)
        return err_set(err, CKPT_E_NOMEM, "no memory for the digests of %llu bytes' blocks",
            (unsigned long long)unit.at.len);
    int rc = pass_begin(&job->pass, over->source, &unit, &sink, err);
    job->begun = rc == 0;
    return rc;
}

/* Makes the pass, or what is left of it, and enters the outcome into the ledger. */
static int job_pass(struct job *job, const struct ckpt_cancel *cancel, const struct ckpt_progress *progress,
    struct ckpt_err *err) {
    struct ledger *ledger = job->jobs->over.ledger;
    uint8_t found[32] = {0};
    int rc = job->begun ? 0 : job_begin(job, err);
    if (!rc)
        rc = pass_run(&job->pass, found, cancel, progress, err);
    if (rc && job->begun && job->pass.differs)
        ledger_differs(ledger, job->index, found);
    if (rc)
        return rc;
    ledger_verified(ledger, job->index, job->blocks);
    job->blocks = NULL;
    return 0;
}

struct wish {
    struct job *job;
    const struct ckpt_cancel *own; /* of the thread that makes the pass; NULL on a worker */
    bool mine;                     /* it was the own one that said stop */
};

static bool wish_asked(void *arg) {
    struct wish *wish = arg;
    wish->mine = wish->mine || pass_cancelled(wish->own);
    return wish->mine || atomic_load(&wish->job->stop);
}

/* Runs a job in state RUNNING to its end or to a stop. The job may be gone afterwards unless the caller waits
 * for it. *ret_mine: stopped by the own cancel. */
static int job_run(struct job *job, const struct ckpt_cancel *own, const struct ckpt_progress *progress,
    bool *ret_mine, struct ckpt_err *err) {
    struct wish wish = {.job = job, .own = own};
    const struct ckpt_cancel cancel = {wish_asked, &wish};
    struct jobs *jobs = job->jobs;
    struct ckpt_err why = {0};
    int rc = job_pass(job, &cancel, progress, &why);
    pthread_mutex_lock(&jobs->lock);
    job->rc = rc;
    job->err = why;
    job->idle = false;
    job->state = rc == CKPT_E_INTR ? JOB_PAUSED : JOB_DONE;
    pthread_cond_broadcast(&job->moved);
    bool last = job->state == JOB_DONE && job->waiters == 0;
    if (job->state == JOB_DONE)
        job_unlist(job);
    pthread_mutex_unlock(&jobs->lock);
    if (last)
        job_free(job);
    if (ret_mine)
        *ret_mine = wish.mine;
    if (rc && err)
        *err = why;
    return rc;
}

static void job_task(struct crew_task *task) {
    job_run((struct job *)task, NULL, NULL, NULL, NULL);
}

/* ---- those who wait (under the lock) ----------------------------------------------------------------- */

static bool hand_to_crew(struct job *job, bool urgent) {
    job->task.run = job_task;
    job->state = JOB_RUNNING;
    atomic_store(&job->stop, false);
    if (crew_hand(job->jobs->over.crew, &job->task, urgent))
        return true;
    job->state = JOB_PAUSED;
    return false;
}

/* False: the own cancel stopped it. */
static bool run_here(struct job *job, bool idle, const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress, int *ret_rc, struct ckpt_err *err) {
    struct jobs *jobs = job->jobs;
    bool mine;
    job->state = JOB_RUNNING;
    job->idle = idle;
    atomic_store(&job->stop, false);
    pthread_mutex_unlock(&jobs->lock);
    *ret_rc = job_run(job, cancel, progress, &mine, err);
    pthread_mutex_lock(&jobs->lock);
    return !mine;
}

/* False: the own cancel said stop. */
static bool wait_while_running(struct job *job, const struct ckpt_cancel *cancel) {
    struct jobs *jobs = job->jobs;
    bool asked = false;
    while (job->state == JOB_RUNNING && !asked) {
        if (!cancel) {
            pthread_cond_wait(&job->moved, &jobs->lock);
            continue;
        }
        tick_wait(&job->moved, &jobs->lock, TICK_MS);
        if (job->state != JOB_RUNNING)
            break;
        pthread_mutex_unlock(&jobs->lock);
        asked = pass_cancelled(cancel);
        pthread_mutex_lock(&jobs->lock);
    }
    return job->state != JOB_RUNNING || !asked;
}

/* Sees to it that the job runs or has run, and waits. False: the own cancel said stop. */
static bool attend(struct job *job, enum jobs_where where, const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress) {
    int rc;
    if (job->state == JOB_RUNNING) {
        atomic_store(&job->stop, job->idle);
        crew_hurry(job->jobs->over.crew, &job->task);
    } else if (where == JOBS_HERE || !hand_to_crew(job, true)) {
        return run_here(job, false, cancel, progress, &rc, NULL);
    }
    return wait_while_running(job, cancel);
}

/* One waiter less. True: the answer is in *ret_rc; false: ask again. */
static bool leave(struct job *job, bool stay, int *ret_rc, struct ckpt_err *err) {
    bool done = job->state == JOB_DONE;
    bool last = --job->waiters == 0;
    if (job->state == JOB_RUNNING && last)
        atomic_store(&job->stop, true);
    if (done) {
        *ret_rc = job->rc;
        if (job->rc && err)
            *err = job->err;
        if (last)
            job_free(job);
    } else if (!stay) {
        *ret_rc = err_set(err, CKPT_E_INTR, "interrupted");
    }
    return done || !stay;
}

static bool known(struct jobs *jobs, uint64_t index, int *ret_rc, struct ckpt_err *err) {
    if (ledger_state(jobs->over.ledger, index) == UNIT_UNKNOWN)
        return false;
    *ret_rc = ledger_fault(jobs->over.ledger, index, err);
    return true;
}

int jobs_need(struct jobs *jobs, uint64_t index, enum jobs_where where, const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress, struct ckpt_err *err) {
    int rc = 0;
    bool answered = known(jobs, index, &rc, err);
    if (answered)
        return rc;
    pthread_mutex_lock(&jobs->lock);
    while (!answered && !(answered = known(jobs, index, &rc, err))) {
        struct job *job = job_of(jobs, index);
        if (!job) {
            rc = err_set(err, CKPT_E_NOMEM, "no memory for a pass");
            break;
        }
        job->waiters++;
        bool stay = attend(job, where, cancel, progress);
        answered = leave(job, stay, &rc, err);
    }
    pthread_mutex_unlock(&jobs->lock);
    return rc;
}

void jobs_begin(struct jobs *jobs, uint64_t index) {
    pthread_mutex_lock(&jobs->lock);
    if (ledger_state(jobs->over.ledger, index) == UNIT_UNKNOWN && !job_find(jobs, index)) {
        struct job *job = job_of(jobs, index);
        if (job)
            hand_to_crew(job, false);
    }
    pthread_mutex_unlock(&jobs->lock);
}

int jobs_idle(struct jobs *jobs, uint64_t index, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    int rc = 0;
    pthread_mutex_lock(&jobs->lock);
    if (!known(jobs, index, &rc, err)) {
        struct job *job = job_of(jobs, index);
        if (!job)
            rc = err_set(err, CKPT_E_NOMEM, "no memory for a pass");
        else if (job->state == JOB_RUNNING)
            rc = err_set(err, CKPT_E_INTR, "another thread checks this unit");
        else
            run_here(job, true, cancel, NULL, &rc, err);
    }
    pthread_mutex_unlock(&jobs->lock);
    return rc;
}
