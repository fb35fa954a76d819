/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever started us: it waits for the news whether the mount is up, while we go into the background. */
#ifndef FUSE_CALLER_H
#define FUSE_CALLER_H

#include <stdatomic.h>
#include <stdbool.h>

struct caller {
    const char *source; /* for messages */
    int notify_fd;      /* gets one byte, 's' when the mount is up, 'f' when it failed; -1: none */
    int parent_fd;      /* after caller_leave: gets the exit code; -1: we are in the foreground */
    atomic_bool told;
};

/* To be called before anything is opened: stdin, stdout and stderr, where closed, would be given to what is
 * opened next, and be lost with it. Takes notify_fd (-1: none), to be used once those are given up. Returns
 * an exit code after it has said what is wrong. */
int caller_meet(struct caller *caller, int notify_fd);

/* Forks and returns in the child, as the leader of a session, in "/". The parent never returns: it exits with
 * the child's news. Returns an exit code after it has said what is wrong. Call it before any thread runs. */
int caller_leave(struct caller *caller);

/* Tells the exit code to come; from the second time on it does nothing. With EXIT_FINE stdin, stdout and
 * stderr are given up, too, when we are in the background. */
void caller_tell(struct caller *caller, int code);

#endif
