/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that watches over a mount: it waits until the mount answers, tells the caller, and unmounts when
 * nobody has used it for long enough. */
#ifndef FUSE_WATCH_H
#define FUSE_WATCH_H

#include "fuse/caller.h"
#include "fuse/front.h"
#include "fuse/log.h"
#include "fuse/options.h"
#include "fuse/own.h"

/* Fields up to `path` are set by whoever starts it, and outlive it. */
struct watch {
    const struct options *options;
    struct front *front;
    struct log *log;
    struct caller *caller;
    const char *path; /* from mount_find */
    struct own own;   /* what we mounted there; set before the watch starts */
    pthread_t thread;
    sem_t stop;
    atomic_bool stopped;
};

/* Errors: negative errno. */
int watch_start(struct watch *watch);
/* Asks the thread to end; watch_join waits for it. In between the session is unmounted, so that a thread
 * that waits for an answer of it gets one. */
void watch_stop(struct watch *watch);
void watch_join(struct watch *watch);

#endif
