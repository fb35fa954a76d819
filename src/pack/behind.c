/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/behind.h"

#include "base/crew.h"
#include "pack/sink.h"

#include <pthread.h>
#include <stdlib.h>

struct behind {
    struct crew_task task; /* first: the crew hands it back */
    struct crew *crew;
    struct sink sink;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool busy; /* the piece is being written */
    uint64_t off;
    const void *bytes;
    size_t len;
    int rc; /* of the last piece, until somebody was told */
    struct ckpt_err err;
};

static void run(struct crew_task *task) {
    struct behind *behind = (struct behind *)task;
    int rc = sink_write(&behind->sink, behind->off, behind->bytes, behind->len, &behind->err);
    pthread_mutex_lock(&behind->lock);
    behind->rc = rc;
    behind->busy = false;
    pthread_cond_signal(&behind->done);
    pthread_mutex_unlock(&behind->lock);
}

int behind_wait(struct behind *behind, struct ckpt_err *err) {
    pthread_mutex_lock(&behind->lock);
    while (behind->busy)
        pthread_cond_wait(&behind->done, &behind->lock);
    int rc = behind->rc;
    behind->rc = 0;
    pthread_mutex_unlock(&behind->lock);
    if (rc && err)
        *err = behind->err;
    return rc;
}

int behind_write(struct behind *behind, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err) {
    int rc = behind_wait(behind, err);
    if (rc)
        return rc;
    behind->off = off;
    behind->bytes = bytes;
    behind->len = len;
    behind->busy = true; /* nobody else looks yet */
    if (!crew_hand(behind->crew, &behind->task, false))
        run(&behind->task);
    return 0;
}

int behind_new(int file, const char *name, uint64_t bytes, struct behind **ret_behind, struct ckpt_err *err) {
    struct behind *behind = calloc(1, sizeof *behind);
    if (!behind)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", name);
    int rc = crew_new(1, &behind->crew, err);
    if (rc) {
        free(behind);
        return rc;
    }
    behind->task.run = run;
    behind->sink = sink_open(file, name, 0, bytes);
    pthread_mutex_init(&behind->lock, NULL);
    pthread_cond_init(&behind->done, NULL);
    *ret_behind = behind;
    return 0;
}

void behind_free(struct behind *behind) {
    if (!behind)
        return;
    crew_free(behind->crew); /* after it has run what it was handed */
    sink_close(&behind->sink);
    pthread_mutex_destroy(&behind->lock);
    pthread_cond_destroy(&behind->done);
    free(behind);
}
