/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/watch.h"

#include "fuse/mount.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

/* The kernel has said hello; what was answered shows by asking for the root. False: it is over already. */
static bool await_answer(struct watch *watch) {
    struct stat root;
    while (sem_wait(&watch->front->initialized) < 0)
        continue;
    if (atomic_load(&watch->stopped))
        return false;
    if (mount_is_foreign(watch->path))
        return true;
    if (stat(watch->path, &root) < 0)
        return errno != ENOTCONN && errno != ECONNABORTED;
    mount_readahead(watch->own.device ? watch->own.device : root.st_dev, watch->options);
    return true;
}

static void tell(struct watch *watch) {
    atomic_store(&watch->log->up, true);
    caller_tell(watch->caller, EXIT_FINE);
}

/* True once the watch is to end; false after the given time. */
static bool wait_for_stop(struct watch *watch, time_t seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    while (sem_timedwait(&watch->stop, &until) < 0)
        if (errno == ETIMEDOUT)
            return false;
    return true;
}

/* MNT_EXPIRE unmounts what nobody touched since the last call; also what the kernel answered by itself
 * counts as touched. Who may not call it goes by the requests, and by what the helper finds in use. */
static void unmount_if_idle(const struct watch *watch, unsigned long long *before) {
    unsigned long long now = atomic_load(&watch->front->requests);
    bool quiet = now == *before;
    *before = now;
    if (!own_is_bare(&watch->own))
        return; /* what lies on top is not ours to unmount, and holds what is below */
    if (umount2(watch->path, MNT_EXPIRE | UMOUNT_NOFOLLOW) < 0 && errno == EPERM && quiet)
        mount_detach(watch->path, false);
}

static void *run(void *arg) {
    struct watch *watch = arg;
    unsigned long long before = 0;
    time_t timeout = (time_t)watch->options->idle_timeout;
    if (!await_answer(watch))
        return NULL;
    tell(watch);
    while (timeout && !wait_for_stop(watch, timeout))
        unmount_if_idle(watch, &before);
    return NULL;
}

int watch_start(struct watch *watch) {
    atomic_init(&watch->stopped, false);
    if (sem_init(&watch->stop, 0, 0) < 0)
        return -errno;
    return -pthread_create(&watch->thread, NULL, run, watch);
}

void watch_stop(struct watch *watch) {
    atomic_store(&watch->stopped, true);
    sem_post(&watch->stop);
    sem_post(&watch->front->initialized);
}

void watch_join(struct watch *watch) {
    pthread_join(watch->thread, NULL);
    sem_destroy(&watch->stop);
}
