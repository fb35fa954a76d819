/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/seal_chunks.h"

#include "base/crew.h"
#include "base/ovf.h"
#include "hash/hash.h"
#include "pack/out.h"

#include <pthread.h>
#include <stdlib.h>

#define PIECE ((size_t)1 << 20) /* large enough for a disk, small enough for a core's cache */
#define PIECE_ALIGN 4096
#define RUN_MAX 1024 /* chunks that a thread takes at once */

struct run {
    const struct chunks *chunks;
    const struct ckpt_write_options *options;
    pthread_mutex_t lock;
    pthread_cond_t moved; /* bytes, ended, stop */
    uint64_t share;       /* bytes that a thread takes at once: whole chunks */
    uint64_t next;        /* where what nobody took yet starts */
    uint64_t bytes;       /* of the payload that can be read */
    bool ended;           /* there will not be more of them */
    bool feeding;         /* a thread looks after them */
    bool stop;            /* drop everything */
    uint64_t done;        /* bytes hashed */
    int rc;               /* the first fault in the payload's order, and where its share starts */
    uint64_t fault_at;
    struct ckpt_err fault;
};

static uint64_t share_of(uint64_t chunk_bytes) {
    if (!chunk_bytes || chunk_bytes >= PIECE)
        return chunk_bytes ? chunk_bytes : PIECE;
    return ovf_min(PIECE / chunk_bytes, RUN_MAX) * chunk_bytes;
}

/* A bad chunk leaves those before it to be looked at to their end: one of them may be bad too. */
static void fail(struct run *run, uint64_t start, int rc, const struct ckpt_err *fault) {
    pthread_mutex_lock(&run->lock);
    if (!run->rc || start < run->fault_at) {
        run->rc = rc;
        run->fault_at = start;
        run->fault = *fault;
    }
    if (rc != CKPT_E_MISMATCH || run->chunks->more)
        run->stop = true;
    pthread_cond_broadcast(&run->moved);
    pthread_mutex_unlock(&run->lock);
}

/* ---- a payload that arrives ---------------------------------------------------------------------------- */

/* One thread does this to its end. */
static bool is_feeder(struct run *run) {
    pthread_mutex_lock(&run->lock);
    bool first = run->chunks->more && !run->feeding;
    run->feeding = true;
    pthread_mutex_unlock(&run->lock);
    return first;
}

static bool reach(struct run *run, uint64_t bytes, bool ended) {
    pthread_mutex_lock(&run->lock);
    run->bytes = bytes;
    run->ended = ended;
    bool goes_on = !ended && !run->stop;
    pthread_cond_broadcast(&run->moved);
    pthread_mutex_unlock(&run->lock);
    return goes_on;
}

static void feed(struct run *run) {
    struct ckpt_err fault;
    uint64_t bytes = 0;
    bool ended = false;
    int rc;
    do
        rc = run->chunks->more(run->chunks->arg, &bytes, &ended, &fault);
    while (!rc && reach(run, bytes, ended));
    if (rc)
        fail(run, bytes, rc, &fault);
}

/* ---- what a thread does -------------------------------------------------------------------------------- */

struct hand {
    struct hash_state *hash;
    uint8_t *piece;
    uint8_t digests[RUN_MAX][32];
    uint64_t count;    /* digests that are complete */
    uint64_t in_chunk; /* bytes of the next one's chunk */
};

/* The next share; false when there is none. */
static bool take(struct run *run, uint64_t *ret_start) {
    pthread_mutex_lock(&run->lock);
    while (!run->stop && !run->rc && !run->ended && run->bytes <= run->next)
        pthread_cond_wait(&run->moved, &run->lock);
    bool taken = !run->stop && !run->rc && run->bytes > run->next;
    *ret_start = run->next;
    if (taken && !ovf_add(run->next, run->share, &run->next))
        run->next = UINT64_MAX;
    pthread_mutex_unlock(&run->lock);
    return taken;
}

/* How much of the piece at off can be read, all of it unless the payload ends; false: stop. */
static bool await(struct run *run, uint64_t off, size_t *len) {
    pthread_mutex_lock(&run->lock);
    while (!run->stop && !run->ended && (run->bytes < off || run->bytes - off < *len))
        pthread_cond_wait(&run->moved, &run->lock);
    bool goes_on = !run->stop;
    *len = run->bytes > off ? (size_t)ovf_min(*len, run->bytes - off) : 0;
    run->done += *len;
    pthread_mutex_unlock(&run->lock);
    return goes_on;
}

static void end_chunk(struct hand *hand) {
    hash_final(hand->hash, hand->digests[hand->count++]);
    hash_reset(hand->hash);
    hand->in_chunk = 0;
}

static void hash_piece(struct hand *hand, uint64_t chunk_bytes, size_t len) {
    const uint8_t *at = hand->piece;
    for (size_t part; len; at += part, len -= part) {
        part = (size_t)ovf_min(len, chunk_bytes - hand->in_chunk);
        hash_update(hand->hash, at, part);
        hand->in_chunk += part;
        if (hand->in_chunk == chunk_bytes)
            end_chunk(hand);
    }
}

static int do_piece(struct run *run, struct hand *hand, uint64_t off, size_t len, struct ckpt_err *err) {
    const struct chunks *chunks = run->chunks;
    int rc = chunks->read(chunks->arg, off, hand->piece, len, err);
    if (!rc && chunks->write)
        rc = chunks->write(chunks->arg, off, hand->piece, len, err);
    if (!rc)
        hash_piece(hand, chunks->chunk_bytes, len);
    return rc;
}

static int report(struct run *run, struct hand *hand, uint64_t start, struct ckpt_err *err) {
    const struct chunks *chunks = run->chunks;
    for (uint64_t i = 0; i < hand->count; i++)
        if (hash_check(hand->digests[i], err) != 0)
            return CKPT_E_NOMEM;
    pthread_mutex_lock(&run->lock);
    int rc = chunks->digests(
        chunks->arg, start / chunks->chunk_bytes, hand->count, (const uint8_t(*)[32])hand->digests, err);
    pthread_mutex_unlock(&run->lock);
    return rc;
}

static int do_share(struct run *run, struct hand *hand, uint64_t start, struct ckpt_err *err) {
    hand->count = hand->in_chunk = 0;
    size_t len;
    for (uint64_t at = 0; at < run->share; at += len) {
        len = (size_t)ovf_min(PIECE, run->share - at);
        if (!await(run, start + at, &len))
            return 0; /* why is known already */
        if (!len)
            break;
        int rc = do_piece(run, hand, start + at, len, err);
        if (rc)
            return rc;
    }
    if (hand->in_chunk)
        end_chunk(hand);
    return report(run, hand, start, err);
}

static int begin(struct hand **ret_hand, struct ckpt_err *err) {
    struct hand *hand = calloc(1, sizeof *hand);
    uint8_t *piece = aligned_alloc(PIECE_ALIGN, PIECE);
    int rc = hand && piece ? hash_new(HASH_SHA256, &hand->hash, err)
                           : err_set(err, CKPT_E_NOMEM, "no memory for a piece of %zu bytes", PIECE);
    if (rc) {
        free(piece);
        free(hand);
        return rc;
    }
    hand->piece = piece;
    *ret_hand = hand;
    return 0;
}

static void work(void *arg) {
    struct run *run = arg;
    struct ckpt_err fault;
    struct hand *hand;
    uint64_t start = 0;
    if (is_feeder(run))
        feed(run);
    int rc = begin(&hand, &fault);
    if (rc) {
        fail(run, start, rc, &fault);
        return;
    }
    while (take(run, &start)) {
        rc = do_share(run, hand, start, &fault);
        if (rc)
            fail(run, start, rc, &fault);
    }
    hash_free(hand->hash);
    free(hand->piece);
    free(hand);
}

/* ---- all of them --------------------------------------------------------------------------------------- */

static void tick(void *arg) {
    struct run *run = arg;
    struct ckpt_err fault;
    pthread_mutex_lock(&run->lock);
    uint64_t done = run->done;
    pthread_mutex_unlock(&run->lock);
    out_tell(run->options, done, run->chunks->bytes);
    int rc = out_stop(run->options, &fault);
    if (rc)
        fail(run, 0, rc, &fault);
}

/* Twice as many as cores: half of them wait for the disk. */
static unsigned hands_for(const struct run *run) {
    uint64_t hands = ovf_min(2 * crew_cores(), CREW_MAX);
    return (unsigned)(run->chunks->more ? hands : ovf_min(hands, run->bytes / run->share + 1));
}

int chunks_run(const struct chunks *chunks, const struct ckpt_write_options *options, struct ckpt_err *err) {
    struct run run = {.chunks = chunks, .options = options, .share = share_of(chunks->chunk_bytes)};
    struct crew *crew;
    run.bytes = chunks->more ? 0 : chunks->bytes;
    run.ended = !chunks->more;
    unsigned hands = hands_for(&run);
    int rc = crew_new(hands, &crew, err);
    if (rc)
        return rc;
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.moved, NULL);
    crew_share(crew, hands, work, tick, &run);
    crew_free(crew);
    pthread_cond_destroy(&run.moved);
    pthread_mutex_destroy(&run.lock);
    if (run.rc && err)
        *err = run.fault;
    return run.rc;
}
