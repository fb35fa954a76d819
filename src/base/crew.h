/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads, started when there is work and kept until crew_free. After a fork the child has none and
 * starts its own; nothing may be under way while forking.
 *
 * Threads: every call from any thread but crew_free.
 */
#ifndef BASE_CREW_H
#define BASE_CREW_H

#include "base/err.h"

#define CREW_MAX 16

struct crew;

/* What a worker does once; owned by whoever hands it in, who may free it from inside run. */
struct crew_task {
    void (*run)(struct crew_task *task);
    struct crew_task *next;
};

/* At most `threads` (1 to CREW_MAX) of them. Errors: NOMEM. */
int crew_new(unsigned threads, struct crew **ret_crew, struct ckpt_err *err);
/* Threads that are started from here on give way to whoever is served meanwhile: on a busy machine a reader
 * would wait, at each of its requests, for a worker's time slice to end. */
void crew_give_way(struct crew *crew);
void crew_free(struct crew *crew); /* runs what was handed in, then ends the threads; NULL is allowed */

/* urgent: before all that are not. False when no thread can be had: the task was not taken. */
bool crew_hand(struct crew *crew, struct crew_task *task, bool urgent);
/* Makes a task urgent that still waits; nothing happens to another one, which need not be the crew's. */
void crew_hurry(struct crew *crew, struct crew_task *task);

/*
 * Runs work(arg) on up to `hands` threads at once (work shares out what there is to do by itself) and returns
 * when all of them returned. With tick NULL the caller works too; otherwise it calls tick(arg) every now and
 * then, unless no thread can be had, when it works after all. Not to be called from inside a task.
 */
void crew_share(
    struct crew *crew, unsigned hands, void (*work)(void *arg), void (*tick)(void *arg), void *arg);

unsigned crew_cores(void); /* processors that this process may use, 1 to CREW_MAX */

#endif
