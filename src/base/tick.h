/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting on a condition with a tick, so that a caller's wish to stop is seen soon. */
#ifndef BASE_TICK_H
#define BASE_TICK_H

#include <pthread.h>
#include <time.h>

#define TICK_MS 20

/* A condition on the monotonic clock: a clock that is set back must not prolong a wait. */
static inline int tick_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int rc = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return rc;
}

/* Waits for a signal or for ms milliseconds, whichever comes first. */
static inline void tick_wait(pthread_cond_t *cond, pthread_mutex_t *lock, long ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(cond, lock, &until);
}

#endif
