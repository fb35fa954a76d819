/* SPDX-License-Identifier: Apache-2.0 */
/* Those who borrow: they say what they want, and wait for the worker's news. */
#include "gpu/client.h"

#include "base/thread.h"
#include "base/tick.h"
#include "gpu/client_own.h"
#include "gpu/fault.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct gpu_loan {
    struct copy *copy;
    struct desk_offer offer; /* GPU_SHARE_FD */
};

/* ---- making and freeing ------------------------------------------------------------------------------ */

static int copy_texts(struct gpu_setup *setup) {
    char *helper = realpath(setup->helper, NULL); /* the daemon goes to another directory */
    setup->helper = helper ? helper : strdup(setup->helper);
    setup->device = strdup(setup->device);
    setup->sockets = strdup(setup->sockets);
    return setup->helper && setup->device && setup->sockets ? 0 : CKPT_E_NOMEM;
}

static void free_all(struct gpu *gpu) {
    desk_free(gpu->desk);
    shelf_free(&gpu->shelf);
    pthread_cond_destroy(&gpu->news);
    pthread_mutex_destroy(&gpu->lock);
    pthread_mutex_destroy(&gpu->desk_lock);
    free((char *)(uintptr_t)gpu->setup.helper);
    free((char *)(uintptr_t)gpu->setup.device);
    free((char *)(uintptr_t)gpu->setup.sockets);
    free(gpu);
}

int gpu_new(const struct gpu_setup *setup, struct gpu **ret_gpu, struct ckpt_err *err) {
    struct gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return err_set(err, CKPT_E_NOMEM, "no memory for gpu/");
    gpu->setup = *setup;
    pthread_mutex_init(&gpu->lock, NULL);
    pthread_mutex_init(&gpu->desk_lock, NULL);
    tick_cond_init(&gpu->news);
    int rc = copy_texts(&gpu->setup) ? err_set(err, CKPT_E_NOMEM, "no memory for gpu/") : 0;
    if (!rc)
        rc = shelf_init(&gpu->shelf, setup->tensors->count, err);
    if (rc)
        free_all(gpu);
    else
        *ret_gpu = gpu;
    return rc;
}

/* The worker may be waiting for a helper that hangs: its end is what wakes it. */
static void stop_worker(struct gpu *gpu) {
    pthread_mutex_lock(&gpu->lock);
    gpu->stop = true;
    if (gpu->session.process.pid)
        kill(gpu->session.process.pid, SIGKILL);
    pthread_mutex_unlock(&gpu->lock);
    (void)!write(gpu->wake, &(uint64_t){1}, sizeof(uint64_t));
    pthread_join(gpu->worker, NULL);
    close(gpu->wake);
}

void gpu_free(struct gpu *gpu) {
    if (!gpu)
        return;
    if (gpu->started)
        stop_worker(gpu);
    free_all(gpu);
}

/* With the lock held: hands the worker something to do. */
static int wake_worker(struct gpu *gpu, struct ckpt_err *err) {
    if (gpu->started) {
        (void)!write(gpu->wake, &(uint64_t){1}, sizeof(uint64_t));
        return 0;
    }
    gpu->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (gpu->wake < 0)
        return err_os(err, errno, "gpu/");
    int failed = thread_start(&gpu->worker, worker_run, gpu);
    gpu->started = !failed;
    if (!failed)
        return 0;
    close(gpu->wake);
    return err_os(err, failed, "a thread for gpu/");
}

/* ---- waiting ----------------------------------------------------------------------------------------- */

/* With the lock held, and not while asking: waits for news, at most a tick. Errors: INTR. */
static int await_news(struct gpu *gpu, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    tick_wait(&gpu->news, &gpu->lock, TICK_MS);
    if (!cancel || !cancel->asked)
        return 0;
    pthread_mutex_unlock(&gpu->lock);
    bool asked = cancel->asked(cancel->arg);
    pthread_mutex_lock(&gpu->lock);
    return asked ? err_set(err, CKPT_E_INTR, "stopped when asked to") : 0;
}

static bool is_coming(const struct copy *copy) {
    return copy->state == COPY_WAITING || copy->state == COPY_LOADING;
}

static int await_copy(
    struct gpu *gpu, const struct copy *copy, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    int rc = 0;
    while (!rc && is_coming(copy))
        rc = await_news(gpu, cancel, err);
    if (copy->state == COPY_READY)
        return 0;
    if (copy->state == COPY_FAILED) {
        *err = copy->err;
        return err->code;
    }
    return rc ? rc : gpu_fault(err, EIO, "the GPU helper has ended, and the tensor with it");
}

/* ---- borrowing --------------------------------------------------------------------------------------- */

static int hold(struct gpu *gpu, uint64_t number, const struct ckpt_cancel *cancel,
    struct gpu_place *ret_place, struct copy **ret_copy, struct ckpt_err *err) {
    const struct tensor *tensor = &gpu->setup.tensors->items[number];
    struct copy *copy;
    uint64_t bytes;
    if (!load_bytes(tensor, gpu->setup.target, &bytes))
        return gpu_fault(err, ENOMEM, "%llu elements pass 2^64 bytes", (unsigned long long)tensor->elements);
    if (gpu->up && process_is_gone(&gpu->session.process))
        shelf_lose(&gpu->shelf); /* before anybody gets what is not there any more */
    int rc = shelf_hold(&gpu->shelf, number, shelf_charge(bytes), &copy, err);
    if (rc)
        return rc;
    if (is_coming(copy))
        rc = wake_worker(gpu, err);
    if (!rc)
        rc = await_copy(gpu, copy, cancel, err);
    if (rc) {
        shelf_drop(&gpu->shelf, copy);
        return rc;
    }
    *ret_place = (struct gpu_place){.tensor = tensor, .device = gpu->session.device, .loaded = copy->loaded};
    *ret_copy = copy;
    return 0;
}

static void let_go(struct gpu *gpu, struct copy *copy) {
    pthread_mutex_lock(&gpu->lock);
    shelf_drop(&gpu->shelf, copy);
    if (gpu->shelf.doomed.first)
        (void)wake_worker(gpu, NULL);
    pthread_mutex_unlock(&gpu->lock);
}

static int open_desk(struct gpu *gpu, struct ckpt_err *err) {
    pthread_mutex_lock(&gpu->desk_lock);
    int rc = gpu->desk ? 0 : desk_new(gpu->setup.sockets, &gpu->desk, err);
    pthread_mutex_unlock(&gpu->desk_lock);
    return rc;
}

static int lend(struct gpu *gpu, struct gpu_loan *loan, struct gpu_place *ret_place, struct ckpt_err *err) {
    if (gpu->setup.share != GPU_SHARE_FD)
        return 0;
    int rc = desk_offer(gpu->desk, &loan->offer, loan->copy->loaded.fd, err);
    ret_place->socket = desk_path(gpu->desk);
    ret_place->token = loan->offer.token;
    return rc;
}

int gpu_borrow(struct gpu *gpu, uint64_t number, const struct ckpt_cancel *cancel,
    struct gpu_place *ret_place, struct gpu_loan **ret_loan, struct ckpt_err *err) {
    struct ckpt_err own;
    err = err ? err : &own;
    struct gpu_loan *loan = calloc(1, sizeof *loan);
    if (!loan)
        return err_set(err, CKPT_E_NOMEM, "no memory for an open tensor");
    int rc = gpu->setup.share == GPU_SHARE_FD ? open_desk(gpu, err) : 0;
    if (!rc) {
        pthread_mutex_lock(&gpu->lock);
        rc = hold(gpu, number, cancel, ret_place, &loan->copy, err);
        pthread_mutex_unlock(&gpu->lock);
    }
    if (!rc) {
        rc = lend(gpu, loan, ret_place, err);
        if (rc)
            let_go(gpu, loan->copy);
    }
    if (rc)
        free(loan);
    else
        *ret_loan = loan;
    return rc;
}

void gpu_give_back(struct gpu *gpu, struct gpu_loan *loan) {
    if (gpu->setup.share == GPU_SHARE_FD)
        desk_withdraw(gpu->desk, &loan->offer);
    let_go(gpu, loan->copy);
    free(loan);
}

/* ---- describing -------------------------------------------------------------------------------------- */

/* While a tensor is being loaded the last news is good enough. */
static int await_answer(struct gpu *gpu, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    uint64_t question = ++gpu->asked;
    int rc = wake_worker(gpu, err);
    while (!rc && gpu->answered < question && !(gpu->up && gpu->busy))
        rc = await_news(gpu, cancel, err);
    if (!rc && gpu->answered >= question && gpu->answer) {
        *err = gpu->answer_err;
        rc = gpu->answer;
    }
    return rc;
}

int gpu_describe(
    struct gpu *gpu, const struct ckpt_cancel *cancel, struct gpu_facts *ret_facts, struct ckpt_err *err) {
    struct ckpt_err own;
    err = err ? err : &own;
    pthread_mutex_lock(&gpu->lock);
    int rc = await_answer(gpu, cancel, err);
    if (!rc)
        *ret_facts = (struct gpu_facts){.device = gpu->session.device,
            .memory = gpu->memory,
            .limited = gpu->shelf.budget != UINT64_MAX,
            .budget = gpu->shelf.budget};
    pthread_mutex_unlock(&gpu->lock);
    return rc;
}
