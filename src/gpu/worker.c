/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that talks to the helper, one step at a time. Its functions are called with the lock held, and
 * give it up while they wait for anything. */
#include "gpu/worker.h"

#include "gpu/fault.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- news -------------------------------------------------------------------------------------------- */

void worker_say(struct gpu *gpu, const char *line) {
    if (!gpu->setup.log.say || gpu->stop)
        return;
    pthread_mutex_unlock(&gpu->lock);
    gpu->setup.log.say(gpu->setup.log.arg, line);
    pthread_mutex_lock(&gpu->lock);
}

void worker_say_device(struct gpu *gpu, const struct ckpt_err *err) {
    char line[sizeof err->msg + 16];
    snprintf(line, sizeof line, "gpu: %s", err->msg);
    worker_say(gpu, line);
}

void worker_fail_all(struct gpu *gpu, const struct ckpt_err *err) {
    shelf_fail_waiting(&gpu->shelf, err);
    gpu->answered = gpu->asked;
    gpu->answer = err->code;
    gpu->answer_err = *err;
    pthread_cond_broadcast(&gpu->news);
}

/* ---- the helper's life ------------------------------------------------------------------------------- */

/* What was on the device is gone with it. */
static void end_session(struct gpu *gpu, char how[64]) {
    struct session session = gpu->session;
    gpu->session = (struct session){0};
    gpu->up = false;
    shelf_lose(&gpu->shelf);
    pthread_mutex_unlock(&gpu->lock);
    session_end(&session, how);
    pthread_mutex_lock(&gpu->lock);
}

void worker_lose(struct gpu *gpu, struct ckpt_err *err) {
    char how[64] = "";
    bool hung = err->os_errno == ETIMEDOUT;
    end_session(gpu, how);
    size_t used = strlen(err->msg);
    snprintf(err->msg + used, sizeof err->msg - used, hung ? ": killed" : " (the helper ended: %s)", how);
}

/* It ended by itself while nothing was asked of it; after a failure of the device that is no news. */
static void notice_end(struct gpu *gpu) {
    struct ckpt_err err;
    gpu_fault(&err, EIO, "the GPU helper is gone, and what it had loaded");
    worker_lose(gpu, &err);
    if (!gpu->ailing)
        worker_say_device(gpu, &err);
}

static int greet(struct gpu *gpu, struct ckpt_err *err) {
    struct session session;
    pthread_mutex_unlock(&gpu->lock);
    int rc = session_start(gpu->setup.helper, gpu->setup.reply_ms, &session, err);
    pthread_mutex_lock(&gpu->lock);
    if (rc)
        return rc;
    gpu->session = session; /* from here on, whoever stops us can end it */
    if (gpu->stop)
        return err_set(err, CKPT_E_INTR, "stopped");
    pthread_mutex_unlock(&gpu->lock);
    rc = session_greet(&gpu->session, gpu->setup.device, gpu->setup.start_ms, err);
    pthread_mutex_lock(&gpu->lock);
    return rc;
}

static void start(struct gpu *gpu) {
    struct ckpt_err err;
    char how[64];
    int rc = greet(gpu, &err);
    if (rc && gpu->session.broken)
        worker_lose(gpu, &err);
    else if (rc)
        end_session(gpu, how); /* it has said why */
    if (rc) {
        worker_say_device(gpu, &err);
        worker_fail_all(gpu, &err);
        return;
    }
    const struct gpu_device *device = &gpu->session.device;
    gpu->memory = (struct gpu_memory){.total = device->total, .free = device->free};
    gpu->shelf.keep = !gpu->setup.limited || gpu->setup.budget;
    gpu->shelf.budget = !gpu->setup.limited ? device->total / 10 * 9
                        : gpu->setup.budget ? gpu->setup.budget
                                            : UINT64_MAX;
    gpu->up = gpu->fresh = true;
    gpu->ailing = false;
}

void worker_count_memory(struct gpu *gpu, uint64_t taken, uint64_t given) {
    gpu->memory.taken += taken - given;
    gpu->memory.free -= taken - given;
}

/* ---- steps ------------------------------------------------------------------------------------------- */

static void fail_broken(struct gpu *gpu, struct ckpt_err *err) {
    worker_lose(gpu, err);
    worker_say_device(gpu, err);
    worker_fail_all(gpu, err);
}

static void release(struct gpu *gpu, uint64_t id) {
    struct ckpt_err err;
    uint64_t given = 0;
    pthread_mutex_unlock(&gpu->lock);
    int rc = load_release(&gpu->session, id, &given, &err);
    pthread_mutex_lock(&gpu->lock);
    worker_count_memory(gpu, 0, given);
    if (rc)
        fail_broken(gpu, &err);
}

static void answer(struct gpu *gpu) {
    const struct gpu_msg info = {.type = GPU_INFO};
    struct gpu_msg reply;
    struct ckpt_err err = {0};
    uint64_t question = gpu->asked;
    pthread_mutex_unlock(&gpu->lock);
    int rc = session_ask(&gpu->session, &info, GPU_MEMORY, 0, &reply, NULL, &err);
    pthread_mutex_lock(&gpu->lock);
    if (rc && gpu->session.broken) {
        fail_broken(gpu, &err);
        return;
    }
    if (rc)
        worker_say_device(gpu, &err);
    else
        gpu->memory = reply.u.memory;
    gpu->answered = question;
    gpu->answer = rc;
    gpu->answer_err = err;
    pthread_cond_broadcast(&gpu->news);
}

/* Until somebody wants something. A helper that speaks now speaks out of turn. */
static void rest(struct gpu *gpu) {
    struct pollfd polled[2] = {{.fd = gpu->wake, .events = POLLIN},
        {.fd = gpu->up ? gpu->session.process.sock : -1, .events = POLLIN}};
    uint64_t count;
    pthread_mutex_unlock(&gpu->lock);
    int ready = poll(polled, 2, -1);
    (void)!read(gpu->wake, &count, sizeof count);
    pthread_mutex_lock(&gpu->lock);
    if (ready > 0 && polled[1].revents)
        gpu->session.broken = true;
}

static void step(struct gpu *gpu) {
    struct copy *next = shelf_next(&gpu->shelf);
    bool asked = gpu->answered < gpu->asked;
    uint64_t id;
    if (gpu->up && (gpu->session.broken || process_is_gone(&gpu->session.process)))
        notice_end(gpu);
    else if (!gpu->up && (asked || next))
        start(gpu);
    else if (gpu->up && shelf_pop_doomed(&gpu->shelf, &id))
        release(gpu, id);
    else if (asked)
        answer(gpu);
    else if (next)
        worker_load(gpu, next);
    else
        rest(gpu);
}

void *worker_run(void *arg) {
    struct gpu *gpu = arg;
    char how[64];
    pthread_mutex_lock(&gpu->lock);
    while (!gpu->stop)
        step(gpu);
    end_session(gpu, how);
    pthread_mutex_unlock(&gpu->lock);
    return NULL;
}
