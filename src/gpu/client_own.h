/* SPDX-License-Identifier: Apache-2.0 */
/* The client's own parts: what those who borrow and the thread that works for them share. */
#ifndef GPU_CLIENT_OWN_H
#define GPU_CLIENT_OWN_H

#include "gpu/client.h"
#include "gpu/desk.h"
#include "gpu/shelf.h"

#include <pthread.h>

struct gpu {
    struct gpu_setup setup;
    pthread_mutex_t desk_lock; /* of the making of: */
    struct desk *desk;         /* GPU_SHARE_FD, once it was needed */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t news;  /* something became ready or failed */
    struct shelf shelf;
    /* The worker's; it converses without the lock, but the process is published and withdrawn under it. */
    struct session session;
    bool up;     /* the helper has told its device */
    bool fresh;  /* and has not been asked for more yet */
    bool busy;   /* with a load */
    bool ailing; /* the last load met a failure of the device: the helper may end, having told of it */
    struct gpu_memory memory;
    uint64_t asked, answered; /* gpu_describe's questions, by number */
    int answer;               /* to the last one */
    struct ckpt_err answer_err;

    bool started, stop; /* the worker */
    pthread_t worker;
    int wake; /* an eventfd: there is something to do */
};

/* The worker's thread; arg is a struct gpu. */
void *worker_run(void *arg);

#endif
