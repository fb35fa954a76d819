/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/feed.h"

#include "base/ovf.h"
#include "base/thread.h"

#include <stdlib.h>

#define FEED_SLOTS 4
#define FEED_LONG ((uint64_t)8 << 20)   /* from here on a thread pays off */
#define FEED_WINDOW ((uint64_t)4 << 20) /* what the source is told about at a time, one window ahead */

struct slot {
    uint8_t *bytes;
    size_t len;
};

struct feed {
    struct source *source;
    uint64_t at, end; /* what is read next; the reading thread's own while it runs */
    uint64_t advised;
    uint64_t left; /* what the caller has not got yet */
    size_t piece;
    uint8_t *memory;
    bool threaded, held; /* held: the caller uses the slot at `first` */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t moved;
    struct slot slots[FEED_SLOTS];
    unsigned first, filled;
    bool quit;
    int rc; /* why the reading thread stopped early */
    struct ckpt_err err;
};

static void advise(struct feed *feed) {
    while (feed->advised < feed->end && feed->advised < feed->at + FEED_WINDOW) {
        uint64_t len = ovf_min(FEED_WINDOW, feed->end - feed->advised);
        source_advise(feed->source, feed->advised, len, true);
        feed->advised += len;
    }
}

static int fill(struct feed *feed, struct slot *slot, struct ckpt_err *err) {
    slot->len = (size_t)ovf_min(feed->piece, feed->end - feed->at);
    int rc = source_read(feed->source, feed->at, slot->bytes, slot->len, err);
    feed->at += rc ? 0 : slot->len;
    return rc;
}

/* The slot to fill next, once there is one; NULL when the caller wants no more. */
static struct slot *free_slot(struct feed *feed) {
    pthread_mutex_lock(&feed->lock);
    while (feed->filled == FEED_SLOTS && !feed->quit)
        pthread_cond_wait(&feed->moved, &feed->lock);
    struct slot *slot = feed->quit ? NULL : &feed->slots[(feed->first + feed->filled) % FEED_SLOTS];
    pthread_mutex_unlock(&feed->lock);
    return slot;
}

static void publish(struct feed *feed, int rc) {
    pthread_mutex_lock(&feed->lock);
    feed->rc = rc;
    feed->filled += rc ? 0 : 1;
    pthread_cond_signal(&feed->moved);
    pthread_mutex_unlock(&feed->lock);
}

static void *read_ahead(void *arg) {
    struct feed *feed = arg;
    struct slot *slot;
    int rc = 0;
    while (!rc && feed->at < feed->end && (slot = free_slot(feed))) {
        advise(feed);
        rc = fill(feed, slot, &feed->err);
        publish(feed, rc);
    }
    return NULL;
}

static void start_thread(struct feed *feed) {
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->moved, NULL);
    feed->threaded = thread_start(&feed->thread, read_ahead, feed) == 0;
    if (feed->threaded)
        return;
    pthread_cond_destroy(&feed->moved);
    pthread_mutex_destroy(&feed->lock);
}

int feed_open(struct source *source, uint64_t off, uint64_t len, size_t piece, struct feed **ret_feed,
    struct ckpt_err *err) {
    bool is_long = len > FEED_LONG;
    struct feed *feed = calloc(1, sizeof *feed);
    size_t size = (size_t)ovf_min(piece, ovf_max(len, 1));
    uint8_t *memory = feed ? malloc((is_long ? FEED_SLOTS : 1) * size) : NULL;
    if (!memory) {
        free(feed);
        return err_set(err, CKPT_E_NOMEM, "no memory to read in pieces of %zu bytes", size);
    }
    *feed = (struct feed){.source = source,
        .at = off,
        .end = off + len,
        .advised = off,
        .left = len,
        .piece = size,
        .memory = memory};
    for (size_t i = 0; i < (is_long ? FEED_SLOTS : 1); i++)
        feed->slots[i].bytes = memory + i * size;
    if (is_long)
        start_thread(feed);
    *ret_feed = feed;
    return 0;
}

/* Gives the piece in hand back and waits for the next. */
static int next_from_thread(struct feed *feed, struct slot **ret_slot, struct ckpt_err *err) {
    pthread_mutex_lock(&feed->lock);
    if (feed->held) {
        feed->first = (feed->first + 1) % FEED_SLOTS;
        feed->filled--;
        pthread_cond_signal(&feed->moved);
    }
    while (!feed->filled && !feed->rc)
        pthread_cond_wait(&feed->moved, &feed->lock);
    feed->held = feed->filled > 0;
    int rc = feed->held ? 0 : feed->rc;
    pthread_mutex_unlock(&feed->lock);
    if (rc && err)
        *err = feed->err;
    *ret_slot = &feed->slots[feed->first];
    return rc;
}

int feed_next(struct feed *feed, const void **ret_bytes, size_t *ret_len, struct ckpt_err *err) {
    struct slot *slot = &feed->slots[0];
    *ret_len = 0;
    if (!feed->left)
        return 0;
    int rc = feed->threaded ? next_from_thread(feed, &slot, err) : fill(feed, slot, err);
    if (rc)
        return rc;
    feed->left -= slot->len;
    *ret_bytes = slot->bytes;
    *ret_len = slot->len;
    return 0;
}

void feed_close(struct feed *feed) {
    if (!feed)
        return;
    if (feed->threaded) {
        pthread_mutex_lock(&feed->lock);
        feed->quit = true;
        pthread_cond_signal(&feed->moved);
        pthread_mutex_unlock(&feed->lock);
        pthread_join(feed->thread, NULL);
        pthread_cond_destroy(&feed->moved);
        pthread_mutex_destroy(&feed->lock);
    }
    free(feed->memory);
    free(feed);
}
