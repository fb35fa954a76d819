/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that talks to the helper, one step at a time. Its functions are called with the lock held, and
 * give it up while they wait for anything. */
#include "base/quote.h"
#include "gpu/client_own.h"
#include "gpu/fault.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- news -------------------------------------------------------------------------------------------- */

/* One line of the log, unless it is us who end the helper; the lock is given up meanwhile. */
static void say(struct gpu *gpu, const char *line) {
    if (!gpu->setup.log.say || gpu->stop)
        return;
    pthread_mutex_unlock(&gpu->lock);
    gpu->setup.log.say(gpu->setup.log.arg, line);
    pthread_mutex_lock(&gpu->lock);
}

static void say_tensor(struct gpu *gpu, uint64_t number, const struct ckpt_err *err) {
    const struct tensor *tensor = &gpu->setup.tensors->items[number];
    char line[sizeof err->msg + 256];
    struct quoted name;
    if (gpu->setup.log.redact)
        snprintf(line, sizeof line, "gpu: tensor number %llu: %s", (unsigned long long)number, err->msg);
    else
        snprintf(
            line, sizeof line, "gpu: tensor %s: %s", quote(&name, tensor->name, tensor->name_len), err->msg);
    say(gpu, line);
}

static void say_device(struct gpu *gpu, const struct ckpt_err *err) {
    char line[sizeof err->msg + 16];
    snprintf(line, sizeof line, "gpu: %s", err->msg);
    say(gpu, line);
}

/* Everybody who waits gets the same answer: the next one to ask tries again. */
static void fail_all(struct gpu *gpu, const struct ckpt_err *err) {
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

/* After an error that leaves no session: adds how the helper ended. */
static void lose(struct gpu *gpu, struct ckpt_err *err) {
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
    lose(gpu, &err);
    if (!gpu->ailing)
        say_device(gpu, &err);
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
        lose(gpu, &err);
    else if (rc)
        end_session(gpu, how); /* it has said why */
    if (rc) {
        say_device(gpu, &err);
        fail_all(gpu, &err);
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

/* ---- loading ----------------------------------------------------------------------------------------- */

/* What the helper said that it took from the device or gave back. */
static void count_memory(struct gpu *gpu, uint64_t taken, uint64_t given) {
    gpu->memory.taken += taken - given;
    gpu->memory.free -= taken - given;
}

struct job {
    struct gpu *gpu;
    struct copy *copy;
    bool began; /* the device has room for it */
    uint64_t given;
    struct loaded loaded;
};

/* Nobody waits for it any more. Called without the lock. */
static bool is_unwanted(void *arg) {
    const struct job *job = arg;
    pthread_mutex_lock(&job->gpu->lock);
    bool unwanted = job->gpu->stop || !job->copy->holders;
    pthread_mutex_unlock(&job->gpu->lock);
    return unwanted;
}

/* Called without the lock. */
static int carry(struct job *job, struct ckpt_err *err) {
    struct gpu *gpu = job->gpu;
    const struct ckpt_cancel cancel = {is_unwanted, job};
    const struct load load = {.source = &gpu->setup.source,
        .tensor = &gpu->setup.tensors->items[job->copy->number],
        .id = job->copy->id,
        .target = gpu->setup.target,
        .share = gpu->setup.share,
        .cancel = &cancel};
    uint64_t taken;
    int rc = load_begin(&gpu->session, &load, &taken, err);
    if (rc)
        return rc;
    job->began = true;
    pthread_mutex_lock(&gpu->lock);
    count_memory(gpu, taken, 0);
    pthread_mutex_unlock(&gpu->lock);
    return load_fill(&gpu->session, &load, &job->loaded, &job->given, err);
}

/* Of a copy that is LOADING, and so stays while the line is written. */
static void refuse(struct gpu *gpu, struct copy *copy, const struct ckpt_err *err) {
    if (err->code != CKPT_E_INTR)
        say_tensor(gpu, copy->number, err);
    shelf_fail(&gpu->shelf, copy, err);
    pthread_cond_broadcast(&gpu->news);
}

/* A helper that had told of its end, or was killed, is only noticed when it is asked again. */
static bool deserves_another(const struct job *job, const struct ckpt_err *err) {
    return !job->gpu->fresh && !job->began && err->os_errno == EIO && !job->copy->tries;
}

static void settle_broken(struct job *job, struct ckpt_err *err) {
    struct gpu *gpu = job->gpu;
    bool again = deserves_another(job, err);
    lose(gpu, err);
    if (again) {
        job->copy->tries++;
        shelf_again(&gpu->shelf, job->copy);
        say_device(gpu, err);
        return;
    }
    refuse(gpu, job->copy, err);
    fail_all(gpu, err);
}

static void settle(struct job *job, int rc, struct ckpt_err *err) {
    struct gpu *gpu = job->gpu;
    struct copy *copy = job->copy;
    bool full = rc == CKPT_E_GPU && err->os_errno == ENOMEM;
    count_memory(gpu, 0, job->given);
    if (!rc) {
        shelf_ready(&gpu->shelf, copy, &job->loaded);
        pthread_cond_broadcast(&gpu->news);
    } else if (gpu->session.broken) {
        settle_broken(job, err);
    } else if ((rc == CKPT_E_INTR && copy->holders && !gpu->stop) || (full && shelf_evict(&gpu->shelf))) {
        shelf_again(&gpu->shelf, copy); /* somebody came after all; or room is being made */
    } else {
        refuse(gpu, copy, err);
    }
    gpu->fresh = false;
    gpu->ailing = rc == CKPT_E_GPU && err->os_errno == EIO;
}

static void load_next(struct gpu *gpu, struct copy *copy) {
    struct job job = {.gpu = gpu, .copy = copy, .loaded.fd = -1};
    struct ckpt_err err = {0};
    shelf_begin(&gpu->shelf, copy);
    gpu->busy = true;
    pthread_cond_broadcast(&gpu->news); /* who asks about the device need not wait for it */
    pthread_mutex_unlock(&gpu->lock);
    int rc = carry(&job, &err);
    pthread_mutex_lock(&gpu->lock);
    gpu->busy = false;
    settle(&job, rc, &err);
}

static void refuse_for_budget(struct gpu *gpu, struct copy *copy) {
    unsigned long long charge = copy->charge, budget = gpu->shelf.budget, used = gpu->shelf.used;
    struct ckpt_err err;
    shelf_begin(&gpu->shelf, copy);
    if (charge > budget)
        gpu_fault(&err, ENOMEM, "%llu bytes on the device: the budget is %llu", charge, budget);
    else
        gpu_fault(&err, ENOMEM, "%llu bytes on the device: %llu of the budget of %llu are in use", charge,
            used, budget);
    refuse(gpu, copy, &err);
}

/* What must go for it is released first, in steps of their own. */
static void load_or_refuse(struct gpu *gpu, struct copy *copy) {
    if (shelf_fits(&gpu->shelf, copy))
        load_next(gpu, copy);
    else if (copy->charge > gpu->shelf.budget || !shelf_evict(&gpu->shelf))
        refuse_for_budget(gpu, copy);
}

/* ---- the other steps --------------------------------------------------------------------------------- */

static void fail_broken(struct gpu *gpu, struct ckpt_err *err) {
    lose(gpu, err);
    say_device(gpu, err);
    fail_all(gpu, err);
}

static void release(struct gpu *gpu, uint64_t id) {
    struct ckpt_err err;
    uint64_t given = 0;
    pthread_mutex_unlock(&gpu->lock);
    int rc = load_release(&gpu->session, id, &given, &err);
    pthread_mutex_lock(&gpu->lock);
    count_memory(gpu, 0, given);
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
        say_device(gpu, &err);
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
        load_or_refuse(gpu, next);
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
