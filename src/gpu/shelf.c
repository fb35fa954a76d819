/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/shelf.h"

#include <stdlib.h>
#include <unistd.h>

#define OWN_BYTES ((uint64_t)1 << 20) /* larger tensors have allocations of their own */
#define GRANULE ((uint64_t)2 << 20)

/* ---- lists ------------------------------------------------------------------------------------------- */

static void append(struct copies *list, struct copy *copy) {
    copy->before = list->last;
    copy->after = NULL;
    *(list->last ? &list->last->after : &list->first) = copy;
    list->last = copy;
}

static void prepend(struct copies *list, struct copy *copy) {
    copy->before = NULL;
    copy->after = list->first;
    *(list->first ? &list->first->before : &list->last) = copy;
    list->first = copy;
}

static void detach(struct copies *list, struct copy *copy) {
    *(copy->before ? &copy->before->after : &list->first) = copy->after;
    *(copy->after ? &copy->after->before : &list->last) = copy->before;
    copy->before = copy->after = NULL;
}

/* ---- making and freeing ------------------------------------------------------------------------------ */

int shelf_init(struct shelf *shelf, uint64_t tensors, struct ckpt_err *err) {
    *shelf = (struct shelf){.tensors = tensors, .keep = true, .budget = UINT64_MAX};
    shelf->of_tensor = calloc(tensors ? tensors : 1, sizeof *shelf->of_tensor);
    if (!shelf->of_tensor)
        return err_set(
            err, CKPT_E_NOMEM, "no memory for the places of %llu tensors", (unsigned long long)tensors);
    return 0;
}

static void copy_free(struct copy *copy) {
    if (copy->loaded.fd >= 0)
        close(copy->loaded.fd);
    free(copy);
}

void shelf_free(struct shelf *shelf) {
    if (shelf->of_tensor)
        shelf_lose(shelf);
    free(shelf->of_tensor);
    *shelf = (struct shelf){0};
}

uint64_t shelf_charge(uint64_t bytes) {
    uint64_t unit = bytes > OWN_BYTES ? GRANULE : GPU_ALIGN;
    uint64_t units = bytes / unit + (bytes % unit != 0 || bytes == 0);
    return units > UINT64_MAX / unit ? UINT64_MAX : units * unit;
}

/* From now on the tensor's next opener gets a new copy. */
static void forget(struct shelf *shelf, const struct copy *copy) {
    if (shelf->of_tensor[copy->number] == copy)
        shelf->of_tensor[copy->number] = NULL;
}

static void doom(struct shelf *shelf, struct copy *copy) {
    forget(shelf, copy);
    copy->state = COPY_DOOMED;
    append(&shelf->doomed, copy);
}

/* ---- openers ----------------------------------------------------------------------------------------- */

static int new_copy(
    struct shelf *shelf, uint64_t number, uint64_t charge, struct copy **ret_copy, struct ckpt_err *err) {
    struct copy *copy = calloc(1, sizeof *copy);
    if (!copy)
        return err_set(err, CKPT_E_NOMEM, "no memory for an open tensor");
    copy->number = number;
    copy->charge = charge;
    copy->loaded.fd = -1;
    shelf->of_tensor[number] = copy;
    append(&shelf->waiting, copy);
    *ret_copy = copy;
    return 0;
}

int shelf_hold(
    struct shelf *shelf, uint64_t number, uint64_t charge, struct copy **ret_copy, struct ckpt_err *err) {
    struct copy *copy = shelf->of_tensor[number];
    int rc = copy ? 0 : new_copy(shelf, number, charge, &copy, err);
    if (rc)
        return rc;
    if (copy->state == COPY_READY && !copy->holders) {
        detach(&shelf->idle, copy);
        append(&shelf->held, copy);
    }
    copy->holders++;
    *ret_copy = copy;
    return 0;
}

static void retire(struct shelf *shelf, struct copy *copy) {
    detach(&shelf->held, copy);
    if (shelf->keep)
        append(&shelf->idle, copy);
    else
        doom(shelf, copy);
}

void shelf_drop(struct shelf *shelf, struct copy *copy) {
    if (--copy->holders)
        return;
    if (copy->state == COPY_READY) {
        retire(shelf, copy);
    } else if (copy->state == COPY_WAITING) {
        detach(&shelf->waiting, copy);
        forget(shelf, copy);
        copy_free(copy);
    } else if (copy->state == COPY_FAILED || copy->state == COPY_LOST) {
        copy_free(copy);
    } /* LOADING: whoever loads it sees that nobody waits */
}

/* ---- whoever loads ----------------------------------------------------------------------------------- */

struct copy *shelf_next(const struct shelf *shelf) {
    return shelf->waiting.first;
}

bool shelf_fits(const struct shelf *shelf, const struct copy *copy) {
    return copy->charge <= shelf->budget && shelf->used <= shelf->budget - copy->charge;
}

bool shelf_evict(struct shelf *shelf) {
    struct copy *copy = shelf->idle.first;
    if (!copy)
        return false;
    detach(&shelf->idle, copy);
    doom(shelf, copy);
    return true;
}

bool shelf_pop_doomed(struct shelf *shelf, uint64_t *ret_id) {
    struct copy *copy = shelf->doomed.first;
    if (!copy)
        return false;
    *ret_id = copy->id;
    detach(&shelf->doomed, copy);
    shelf->used -= copy->charge;
    copy_free(copy);
    return true;
}

void shelf_begin(struct shelf *shelf, struct copy *copy) {
    detach(&shelf->waiting, copy);
    copy->state = COPY_LOADING;
    copy->id = ++shelf->last_id;
    shelf->used += copy->charge;
}

void shelf_ready(struct shelf *shelf, struct copy *copy, const struct loaded *loaded) {
    copy->loaded = *loaded;
    copy->state = COPY_READY;
    append(&shelf->held, copy);
    if (!copy->holders)
        retire(shelf, copy);
}

void shelf_again(struct shelf *shelf, struct copy *copy) {
    shelf->used -= copy->charge;
    copy->state = COPY_WAITING;
    prepend(&shelf->waiting, copy);
}

void shelf_fail(struct shelf *shelf, struct copy *copy, const struct ckpt_err *err) {
    if (copy->state == COPY_WAITING)
        detach(&shelf->waiting, copy);
    else
        shelf->used -= copy->charge;
    forget(shelf, copy);
    copy->state = COPY_FAILED;
    copy->err = *err;
    if (!copy->holders)
        copy_free(copy);
}

void shelf_fail_waiting(struct shelf *shelf, const struct ckpt_err *err) {
    while (shelf->waiting.first)
        shelf_fail(shelf, shelf->waiting.first, err);
}

void shelf_lose(struct shelf *shelf) {
    uint64_t id;
    while (shelf_evict(shelf))
        continue;
    while (shelf_pop_doomed(shelf, &id))
        continue;
    while (shelf->held.first) {
        struct copy *copy = shelf->held.first;
        detach(&shelf->held, copy);
        forget(shelf, copy);
        copy->state = COPY_LOST;
        shelf->used -= copy->charge;
    }
}
