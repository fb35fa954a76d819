/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's longest step: one tensor's load, and what becomes of it. */
#include "gpu/worker.h"

#include "base/quote.h"
#include "gpu/fault.h"

#include <errno.h>
#include <stdio.h>

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
    worker_count_memory(gpu, taken, 0);
    pthread_mutex_unlock(&gpu->lock);
    return load_fill(&gpu->session, &load, &job->loaded, &job->given, err);
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
    worker_say(gpu, line);
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
    if (err->code != CKPT_E_GPU) /* the tensor's own fault, or nobody waits: no news for those who do */
        gpu_fault(err, EIO, "the GPU helper failed while a load was taken back");
    worker_lose(gpu, err);
    if (again) {
        job->copy->tries++;
        shelf_again(&gpu->shelf, job->copy);
        worker_say_device(gpu, err);
        return;
    }
    refuse(gpu, job->copy, err);
    worker_fail_all(gpu, err);
}

static void settle(struct job *job, int rc, struct ckpt_err *err) {
    struct gpu *gpu = job->gpu;
    struct copy *copy = job->copy;
    bool full = rc == CKPT_E_GPU && err->os_errno == ENOMEM;
    worker_count_memory(gpu, 0, job->given);
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
void worker_load(struct gpu *gpu, struct copy *copy) {
    if (shelf_fits(&gpu->shelf, copy))
        load_next(gpu, copy);
    else if (copy->charge > gpu->shelf.budget || !shelf_evict(&gpu->shelf))
        refuse_for_budget(gpu, copy);
}
