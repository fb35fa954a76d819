/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/store.h"

#include "base/ovf.h"
#include "gpu/fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gpu_store {
    struct ckpt_memory memory;
    struct session session; /* zeroed once it has ended */
    struct gpu_device device;
    enum gpu_share share;
    uint64_t last_id;
    bool ended;
    char how[64]; /* it ended */
};

int gpu_store_lives(const struct gpu_store *store, struct ckpt_err *err) {
    if (!store->ended)
        return 0;
    return gpu_fault(
        err, EIO, "the GPU helper has ended (%s): the parameters on the device are lost", store->how);
}

/* A session that broke is of no use to the next call either. */
static int settle(struct gpu_store *store, int rc) {
    if (store->session.broken) {
        session_end(&store->session, store->how);
        store->ended = true;
    }
    return rc;
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

static void block_done(struct gpu_block *block) {
    if (block->fd >= 0)
        close(block->fd);
    free(block);
}

static int make(struct gpu_store *store, uint64_t bytes, struct gpu_block *block, struct ckpt_err *err) {
    const struct gpu_msg request = {
        .type = GPU_MAKE, .u.make = {.id = ++store->last_id, .bytes = bytes, .share = (uint8_t)store->share}};
    struct gpu_msg reply;
    int rc = session_ask(&store->session, &request, GPU_READY, store->last_id, &reply, &block->fd, err);
    if (rc)
        return rc;
    block->at = reply.u.ready;
    if (block->at.bytes != bytes || block->at.share != store->share)
        return session_break(&store->session, err, "other memory was made");
    return 0;
}

static int alloc(void *arg, uint64_t bytes, void **ret_block, struct ckpt_err *err) {
    struct gpu_store *store = arg;
    struct ckpt_err ignored;
    err = err ? err : &ignored;
    int rc = gpu_store_lives(store, err);
    if (rc)
        return rc;
    struct gpu_block *block = malloc(sizeof *block);
    if (!block)
        return err_set(err, CKPT_E_NOMEM, "no memory for the place of %" PRIu64 " bytes", bytes);
    block->fd = -1;
    rc = settle(store, make(store, bytes, block, err));
    if (rc) {
        block_done(block);
        return rc;
    }
    *ret_block = block;
    return 0;
}

static void release(void *arg, void *given) {
    struct gpu_store *store = arg;
    struct gpu_block *block = given;
    const struct gpu_msg request = {.type = GPU_RELEASE, .u.release.id = block->at.id};
    struct gpu_msg reply;
    struct ckpt_err ignored;
    if (!store->ended)
        (void)settle(store,
            session_ask(&store->session, &request, GPU_RELEASED, block->at.id, &reply, NULL, &ignored));
    block_done(block);
}

/* ---- copies ------------------------------------------------------------------------------------------ */

/* Between the host and a block, through the window's halves in turn: one is filled or emptied here while the
 * helper copies the other. */
struct move {
    struct session *session;
    uint64_t id, offset, len; /* in the block */
    const uint8_t *from;      /* host memory to write from, or NULL: */
    uint8_t *to;              /* to read into */
    uint64_t told, done;      /* bytes that were asked for, that were copied */
};

static size_t piece(const struct move *move, uint64_t at) {
    return (size_t)ovf_min(WINDOW_HALF, move->len - at);
}

static uint8_t half_of(uint64_t at) {
    return at / WINDOW_HALF % 2;
}

static uint8_t *window(const struct move *move, uint64_t at) {
    return move->session->window + half_of(at) * (size_t)WINDOW_HALF;
}

static int tell(struct move *move, struct ckpt_err *err) {
    uint64_t at = move->told;
    const struct gpu_msg request = {.type = move->from ? GPU_WRITE : GPU_READ,
        .u.write = {
            .id = move->id, .off = move->offset + at, .len = (uint32_t)piece(move, at), .half = half_of(at)}};
    if (move->from)
        memcpy(window(move, at), move->from + at, piece(move, at));
    move->told += piece(move, at);
    return session_tell(move->session, &request, err);
}

static int hear(struct move *move, struct ckpt_err *err) {
    struct gpu_msg reply;
    uint64_t at = move->done;
    move->done += piece(move, at);
    int rc = session_hear(move->session, GPU_COPIED, move->id, &reply, NULL, err);
    if (!rc && reply.u.copied.half != half_of(at))
        rc = session_break(move->session, err, "the other half was copied");
    if (!rc && move->to)
        memcpy(move->to + at, window(move, at), piece(move, at));
    return rc;
}

static int run(struct move *move, struct ckpt_err *err) {
    struct ckpt_err ignored;
    int rc = 0;
    while (!rc && move->done < move->len)
        if (move->told < move->len && move->told - move->done < 2 * (uint64_t)WINDOW_HALF)
            rc = tell(move, err);
        else
            rc = hear(move, err);
    while (move->done < move->told && !move->session->broken)
        (void)hear(move, &ignored); /* so that the next reply is the next request's */
    return rc;
}

static int start(struct gpu_store *store, struct move move, struct ckpt_err *err) {
    struct ckpt_err ignored;
    err = err ? err : &ignored;
    int rc = gpu_store_lives(store, err);
    move.session = &store->session;
    return rc ? rc : settle(store, run(&move, err));
}

static int put(
    void *arg, void *block, uint64_t offset, const void *bytes, uint64_t len, struct ckpt_err *err) {
    const struct gpu_block *at = block;
    return start(arg, (struct move){.id = at->at.id, .offset = offset, .len = len, .from = bytes}, err);
}

static int get(void *arg, void *block, uint64_t offset, void *bytes, uint64_t len, struct ckpt_err *err) {
    const struct gpu_block *at = block;
    return start(arg, (struct move){.id = at->at.id, .offset = offset, .len = len, .to = bytes}, err);
}

/* ---- the store --------------------------------------------------------------------------------------- */

static int start_helper(struct gpu_store *store, const struct gpu_store_setup *setup, struct ckpt_err *err) {
    int rc = session_start(setup->helper, setup->reply_ms, &store->session, err);
    if (!rc)
        rc = session_greet(&store->session, setup->device, setup->start_ms, err);
    if (!rc)
        store->device = store->session.device;
    return rc;
}

int gpu_store_new(const struct gpu_store_setup *setup, struct gpu_store **ret_store, struct ckpt_err *err) {
    struct gpu_store *store = calloc(1, sizeof *store);
    struct ckpt_err local;
    err = err ? err : &local;
    if (!store)
        return err_set(err, CKPT_E_NOMEM, "no memory for a device's memory");
    store->share = setup->share;
    store->memory =
        (struct ckpt_memory){.arg = store, .alloc = alloc, .free = release, .put = put, .get = get};
    int rc = start_helper(store, setup, err);
    if (rc) {
        gpu_store_free(store);
        return rc;
    }
    *ret_store = store;
    return 0;
}

void gpu_store_free(struct gpu_store *store) {
    if (store)
        session_end(&store->session, store->how);
    free(store);
}

struct ckpt_memory *gpu_store_memory(struct gpu_store *store) {
    return &store->memory;
}

struct gpu_store *gpu_store_of(const struct ckpt_memory *memory) {
    return memory->alloc == alloc ? memory->arg : NULL;
}

const struct gpu_device *gpu_store_device(const struct gpu_store *store) {
    return &store->device;
}
