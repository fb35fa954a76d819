/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of the library's own: it takes no signals, those are for the program's threads. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create, whose errno it returns. */
static inline int thread_start(pthread_t *ret_thread, void *(*run)(void *arg), void *arg) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(ret_thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

#endif
