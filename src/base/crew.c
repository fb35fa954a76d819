/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crew.h"

#include "base/thread.h"
#include "base/tick.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define NICE 5 /* a third of the weight of others, where there is not enough for all */

struct queue {
    struct crew_task *head, **tail;
};

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct queue urgent, other;
    unsigned queued, idle, threads, max;
    bool quit, gives_way;
    pid_t pid; /* whose threads these are */
    pthread_t ids[CREW_MAX];
};

unsigned crew_cores(void) {
    cpu_set_t set;
    long cores =
        sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > CREW_MAX ? CREW_MAX : (unsigned)cores;
}

int crew_new(unsigned threads, struct crew **ret_crew, struct ckpt_err *err) {
    struct crew *crew = calloc(1, sizeof *crew);
    if (!crew)
        return err_set(err, CKPT_E_NOMEM, "no memory for worker threads");
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->work, NULL);
    crew->urgent.tail = &crew->urgent.head;
    crew->other.tail = &crew->other.head;
    crew->max = threads;
    crew->pid = getpid();
    *ret_crew = crew;
    return 0;
}

/* ---- queues (under the lock) ------------------------------------------------------------------------- */

static bool any(const struct crew *crew) {
    return crew->urgent.head || crew->other.head;
}

static void put(struct crew *crew, struct queue *queue, struct crew_task *task) {
    task->next = NULL;
    *queue->tail = task;
    queue->tail = &task->next;
    crew->queued++;
}

static bool withdraw_from(struct crew *crew, struct queue *queue, struct crew_task *task) {
    struct crew_task **at = &queue->head;
    while (*at && *at != task)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = task->next;
    if (!*at)
        queue->tail = at;
    crew->queued--;
    return true;
}

static struct crew_task *take(struct crew *crew) {
    struct queue *queue = crew->urgent.head ? &crew->urgent : &crew->other;
    struct crew_task *task = queue->head;
    withdraw_from(crew, queue, task);
    return task;
}

/* ---- threads ----------------------------------------------------------------------------------------- */

void crew_give_way(struct crew *crew) {
    pthread_mutex_lock(&crew->lock);
    crew->gives_way = true;
    pthread_mutex_unlock(&crew->lock);
}

static void *worker(void *arg) {
    struct crew *crew = arg;
    pthread_mutex_lock(&crew->lock);
    if (crew->gives_way)
        (void)!nice(NICE); /* on Linux of this thread alone */
    for (;;) {
        crew->idle++;
        while (!any(crew) && !crew->quit)
            pthread_cond_wait(&crew->work, &crew->lock);
        crew->idle--;
        if (!any(crew))
            break;
        struct crew_task *task = take(crew);
        pthread_mutex_unlock(&crew->lock);
        task->run(task);
        pthread_mutex_lock(&crew->lock);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* The threads of before a fork stayed behind, some of them waiting on the condition: it is made anew. */
static void forget_parent(struct crew *crew) {
    if (crew->pid == getpid())
        return;
    crew->pid = getpid();
    crew->threads = crew->idle = 0;
    pthread_cond_init(&crew->work, NULL);
}

bool crew_hand(struct crew *crew, struct crew_task *task, bool urgent) {
    pthread_mutex_lock(&crew->lock);
    forget_parent(crew);
    if (crew->idle <= crew->queued && crew->threads < crew->max &&
        thread_start(&crew->ids[crew->threads], worker, crew) == 0)
        crew->threads++;
    bool taken = crew->threads > 0;
    if (taken) {
        put(crew, urgent ? &crew->urgent : &crew->other, task);
        pthread_cond_signal(&crew->work);
    }
    pthread_mutex_unlock(&crew->lock);
    return taken;
}

void crew_hurry(struct crew *crew, struct crew_task *task) {
    pthread_mutex_lock(&crew->lock);
    if (withdraw_from(crew, &crew->other, task))
        put(crew, &crew->urgent, task);
    pthread_mutex_unlock(&crew->lock);
}

static bool withdraw(struct crew *crew, struct crew_task *task) {
    pthread_mutex_lock(&crew->lock);
    bool found = withdraw_from(crew, &crew->urgent, task);
    pthread_mutex_unlock(&crew->lock);
    return found;
}

void crew_free(struct crew *crew) {
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    forget_parent(crew);
    crew->quit = true;
    pthread_cond_broadcast(&crew->work);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < crew->threads; i++)
        pthread_join(crew->ids[i], NULL);
    pthread_cond_destroy(&crew->work);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

/* ---- sharing one piece of work ----------------------------------------------------------------------- */

struct share {
    void (*work)(void *arg);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned under_way;
};

struct hand {
    struct crew_task task; /* first, so that one pointer is the other */
    struct share *share;
};

static void hand_run(struct crew_task *task) {
    struct share *share = ((struct hand *)task)->share;
    share->work(share->arg);
    pthread_mutex_lock(&share->lock);
    share->under_way--;
    pthread_cond_signal(&share->ended);
    pthread_mutex_unlock(&share->lock);
}

static unsigned hand_out(struct crew *crew, struct share *share, struct hand *hands, unsigned count) {
    unsigned taken = 0;
    for (; taken < count; taken++) {
        hands[taken] = (struct hand){.task = {.run = hand_run}, .share = share};
        pthread_mutex_lock(&share->lock);
        share->under_way++;
        pthread_mutex_unlock(&share->lock);
        if (!crew_hand(crew, &hands[taken].task, true))
            break;
    }
    if (taken < count) {
        pthread_mutex_lock(&share->lock);
        share->under_way--;
        pthread_mutex_unlock(&share->lock);
    }
    return taken;
}

/* What nobody began while the caller did all the work is not needed any more. */
static void call_back(struct crew *crew, struct share *share, struct hand *hands, unsigned count) {
    unsigned back = 0;
    for (unsigned i = 0; i < count; i++)
        back += withdraw(crew, &hands[i].task);
    pthread_mutex_lock(&share->lock);
    share->under_way -= back;
    pthread_mutex_unlock(&share->lock);
}

static void await(struct share *share, void (*tick)(void *arg)) {
    pthread_mutex_lock(&share->lock);
    while (share->under_way) {
        if (!tick) {
            pthread_cond_wait(&share->ended, &share->lock);
            continue;
        }
        tick_wait(&share->ended, &share->lock, TICK_MS);
        pthread_mutex_unlock(&share->lock);
        tick(share->arg);
        pthread_mutex_lock(&share->lock);
    }
    pthread_mutex_unlock(&share->lock);
}

void crew_share(
    struct crew *crew, unsigned hands, void (*work)(void *arg), void (*tick)(void *arg), void *arg) {
    struct share share = {.work = work, .arg = arg};
    struct hand list[CREW_MAX];
    pthread_mutex_init(&share.lock, NULL);
    tick_cond_init(&share.ended);
    unsigned taken = hand_out(crew, &share, list, hands > CREW_MAX ? CREW_MAX : hands);
    if (!tick || !taken) {
        work(arg);
        call_back(crew, &share, list, taken);
    }
    await(&share, tick);
    pthread_cond_destroy(&share.ended);
    pthread_mutex_destroy(&share.lock);
}
