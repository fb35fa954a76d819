/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors' copies on the device: who holds them, which are to be loaded next, which to go first when the
 * budget is full. Knows nothing of helpers; whoever loads is told what to load and what to release.
 *
 *   WAITING -> LOADING -> READY -> (idle, kept) -> DOOMED -> gone
 *                      \-> FAILED     READY -> LOST: the device has forgotten it
 *
 * Threads: one at a time; the caller has the lock.
 */
#ifndef GPU_SHELF_H
#define GPU_SHELF_H

#include "gpu/load.h"

enum copy_state { COPY_WAITING, COPY_LOADING, COPY_READY, COPY_DOOMED, COPY_FAILED, COPY_LOST };

struct copy {
    uint64_t number; /* of the tensor */
    uint64_t id;     /* for the helper */
    enum copy_state state;
    unsigned holders;     /* opens that wait for it or have it */
    unsigned tries;       /* with helpers that turned out to be gone */
    uint64_t charge;      /* what it counts in the budget */
    struct loaded loaded; /* once READY */
    struct ckpt_err err;  /* once FAILED */
    struct copy *before, *after;
};

/* Oldest first. */
struct copies {
    struct copy *first, *last;
};

struct shelf {
    struct copy **of_tensor; /* by number; NULL: none, or none that is of use any more */
    uint64_t tensors;
    uint64_t last_id;
    bool keep;       /* what nobody holds; else it is doomed at once */
    uint64_t budget; /* of the charges of what is loading or on the device */
    uint64_t used;
    struct copies waiting, idle, held, doomed; /* idle, held: READY, without and with holders */
};

/* Errors: NOMEM. */
int shelf_init(struct shelf *shelf, uint64_t tensors, struct ckpt_err *err);
void shelf_free(struct shelf *shelf); /* nobody holds anything */

/* What a tensor of so many bytes on the device counts. */
uint64_t shelf_charge(uint64_t bytes);

/* ---- openers ----------------------------------------------------------------------------------------- */

/* The tensor's copy, held; a new one waits to be loaded. Errors: NOMEM. */
int shelf_hold(
    struct shelf *shelf, uint64_t number, uint64_t charge, struct copy **ret_copy, struct ckpt_err *err);
/* Ends a hold. A copy that was READY may be doomed now. */
void shelf_drop(struct shelf *shelf, struct copy *copy);

/* ---- whoever loads ----------------------------------------------------------------------------------- */

/* The one to load next, or NULL; it stays WAITING. */
struct copy *shelf_next(const struct shelf *shelf);
/* Whether the budget has room for it now. */
bool shelf_fits(const struct shelf *shelf, const struct copy *copy);
/* Dooms the least recently used one that nobody holds; false when all are held. */
bool shelf_evict(struct shelf *shelf);
/* The next one to release, which is forgotten here; false: there is none. */
bool shelf_pop_doomed(struct shelf *shelf, uint64_t *ret_id);

void shelf_begin(struct shelf *shelf, struct copy *copy); /* WAITING -> LOADING, with an id */
void shelf_ready(struct shelf *shelf, struct copy *copy, const struct loaded *loaded);
void shelf_again(struct shelf *shelf, struct copy *copy); /* LOADING -> WAITING, the next one */
/* WAITING or LOADING -> FAILED, for all who wait. */
void shelf_fail(struct shelf *shelf, struct copy *copy, const struct ckpt_err *err);
void shelf_fail_waiting(struct shelf *shelf, const struct ckpt_err *err); /* all that wait */

/* The device has forgotten everything: READY and doomed ones are lost. */
void shelf_lose(struct shelf *shelf);

#endif
