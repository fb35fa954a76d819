/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies what nobody has asked for yet, on a thread that only runs when nothing else wants to. */
#include "base/ovf.h"
#include "base/thread.h"
#include "base/tick.h"
#include "verify/guard_own.h"
#include "verify/sweep.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REST_MS 1000

/* <linux/ioprio.h> is not everywhere: the idle class of IOPRIO_WHO_PROCESS 0, this thread. */
#define IDLE_WHO 1
#define IDLE_CLASS (3 << 13)

/* Best effort: without it the thread works at the priority of the others. */
static void lower_priority(void) {
    const struct sched_param none = {.sched_priority = 0};
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
    syscall(SYS_ioprio_set, IDLE_WHO, 0, IDLE_CLASS);
}

static bool stop_asked(void *arg) {
    return atomic_load(&((struct guard *)arg)->stopping);
}

/* False: somebody else checks the span, and may give up. */
static bool check_span(struct guard *guard, uint64_t first, uint64_t count, void *scratch) {
    const struct ckpt_cancel cancel = {stop_asked, guard};
    uint64_t bad;
    if (unit_get(guard->table, first).at.len > SPAN_SMALL_BYTES)
        return jobs_idle(guard->jobs, first, &cancel, NULL) != CKPT_E_INTR;
    guard_check_small(guard, first, count, scratch, &bad, NULL);
    return true;
}

/* Once over all units; false when some are left to look at again. */
static bool check_all(struct guard *guard, void *scratch) {
    bool complete = true;
    for (uint64_t first = 0; first < guard->table->count && !stop_asked(guard);) {
        uint64_t count = ovf_max(span_small(guard->table, first, SWEEP_SPAN_BYTES), 1);
        complete = check_span(guard, first, count, scratch) && complete;
        first += count;
    }
    return complete;
}

static void take_rest(struct guard *guard) {
    pthread_mutex_lock(&guard->rest_lock);
    if (!stop_asked(guard))
        tick_wait(&guard->rest, &guard->rest_lock, REST_MS);
    pthread_mutex_unlock(&guard->rest_lock);
}

static void *background_run(void *arg) {
    struct guard *guard = arg;
    void *scratch = malloc(SWEEP_SPAN_BYTES);
    lower_priority();
    while (scratch && !check_all(guard, scratch) && !stop_asked(guard))
        take_rest(guard);
    free(scratch);
    return NULL;
}

int background_start(struct guard *guard, struct ckpt_err *err) {
    int rc = thread_start(&guard->thread, background_run, guard);
    if (rc)
        return err_os(err, rc, "start the thread that verifies in the background");
    guard->background = true;
    return 0;
}

void background_stop(struct guard *guard) {
    if (!guard->background)
        return;
    pthread_mutex_lock(&guard->rest_lock);
    atomic_store(&guard->stopping, true);
    pthread_cond_signal(&guard->rest);
    pthread_mutex_unlock(&guard->rest_lock);
    pthread_join(guard->thread, NULL);
    guard->background = false;
}
