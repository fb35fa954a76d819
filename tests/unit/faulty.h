/* SPDX-License-Identifier: Apache-2.0 */
/* A source in memory that can be made to fail, to shrink, to change and to hold its readers up, and that
 * counts; and the unit tables over it. */
#ifndef TESTS_UNIT_FAULTY_H
#define TESTS_UNIT_FAULTY_H

#include "base/ovf.h"
#include "catalog/catalog.h"
#include "hash/hash.h"
#include "source/source.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct faulty {
    struct source source;
    uint8_t *bytes;
    _Atomic uint64_t size_now;
    _Atomic uint64_t piece;   /* the most that one pread gives; 0: all */
    _Atomic uint64_t watched; /* reads of this byte are counted */
    atomic_uint watched_reads, reads;
    atomic_int watched_policy; /* the scheduling policy of who read it last */
    _Atomic uint64_t bad_off;  /* reads of this byte fail with EIO ... */
    atomic_uint bad_times;     /* ... so many times */
    _Atomic uint32_t mtime;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t gate; /* reads of this byte wait while it is closed */
    bool closed;
    unsigned held; /* readers that wait */
};

static inline bool faulty_touches(uint64_t byte, uint64_t off, size_t len) {
    return byte >= off && byte - off < len;
}

static inline void faulty_wait_at_gate(struct faulty *faulty, uint64_t off, size_t len) {
    pthread_mutex_lock(&faulty->lock);
    if (faulty->closed && faulty_touches(faulty->gate, off, len)) {
        faulty->held++;
        pthread_cond_broadcast(&faulty->moved);
        while (faulty->closed)
            pthread_cond_wait(&faulty->moved, &faulty->lock);
        faulty->held--;
    }
    pthread_mutex_unlock(&faulty->lock);
}

static inline int faulty_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    struct faulty *faulty = (struct faulty *)source;
    faulty_wait_at_gate(faulty, off, len);
    uint64_t size = faulty->size_now, piece = faulty->piece;
    size_t take = off < size ? (size_t)ovf_min(len, size - off) : 0;
    if (piece && take > piece)
        take = (size_t)piece;
    faulty->reads++;
    if (faulty_touches(faulty->watched, off, take)) {
        faulty->watched_reads++;
        faulty->watched_policy = sched_getscheduler(0);
    }
    if (faulty->bad_times && faulty_touches(faulty->bad_off, off, len)) {
        faulty->bad_times--;
        return err_os(err, EIO, "%s: read at offset %llu", source->name, (unsigned long long)off);
    }
    if (take)
        memcpy(buf, faulty->bytes + off, take);
    *ret_len = take;
    return 0;
}

static inline int faulty_stat(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err) {
    struct faulty *faulty = (struct faulty *)source;
    (void)err;
    *ret_stat = (struct source_stat){.size = faulty->size_now, .mtime_nsec = faulty->mtime};
    return 0;
}

static inline void faulty_close(struct source *source) {
    struct faulty *faulty = (struct faulty *)source;
    pthread_cond_destroy(&faulty->moved);
    pthread_mutex_destroy(&faulty->lock);
    free(faulty->bytes);
}

static const struct source_ops faulty_ops = {
    .pread = faulty_pread, .stat = faulty_stat, .close = faulty_close};

/* Bytes that differ from place to place, always the same ones. */
static inline struct faulty *faulty_new(uint64_t size) {
    struct source *source;
    ck_assert_int_eq(source_new(sizeof(struct faulty), &faulty_ops, "faulty", &source, NULL), 0);
    struct faulty *faulty = (struct faulty *)source;
    pthread_mutex_init(&faulty->lock, NULL);
    pthread_cond_init(&faulty->moved, NULL);
    faulty->bytes = malloc(size + 1);
    uint64_t x = 88172645463325252u;
    for (uint64_t i = 0; i < size; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        faulty->bytes[i] = (uint8_t)(x >> 24);
    }
    faulty->size_now = size;
    faulty->watched = faulty->bad_off = UINT64_MAX;
    source->size = source->opened.size = size;
    return faulty;
}

static inline void faulty_gate(struct faulty *faulty, uint64_t off) {
    pthread_mutex_lock(&faulty->lock);
    faulty->gate = off;
    faulty->closed = true;
    pthread_mutex_unlock(&faulty->lock);
}

static inline void faulty_await_held(struct faulty *faulty) {
    pthread_mutex_lock(&faulty->lock);
    while (!faulty->held)
        pthread_cond_wait(&faulty->moved, &faulty->lock);
    pthread_mutex_unlock(&faulty->lock);
}

static inline void faulty_open_gate(struct faulty *faulty) {
    pthread_mutex_lock(&faulty->lock);
    faulty->closed = false;
    pthread_cond_broadcast(&faulty->moved);
    pthread_mutex_unlock(&faulty->lock);
}

/* ---- unit tables (free what they point to with tables_free) ------------------------------------------- */

static inline struct unit_table chunks_over(const struct faulty *faulty, uint64_t base, uint64_t chunk) {
    uint64_t total = faulty->source.size - base, count = (total + chunk - 1) / chunk;
    uint8_t(*digests)[32] = calloc(count + 1, 32);
    for (uint64_t i = 0; i < count; i++) {
        size_t len = (size_t)ovf_min(chunk, total - i * chunk);
        ck_assert_int_eq(hash_bytes(HASH_SHA256, faulty->bytes + base + i * chunk, len, digests[i], NULL), 0);
    }
    return (struct unit_table){.count = count,
        .base = base,
        .total = total,
        .chunk = chunk,
        .digests = (const uint8_t(*)[32])digests};
}

static inline struct unit section_over(const struct faulty *faulty, struct range at, uint64_t index) {
    static const char *const labels[] = {"config section", "tensors section", "weights section"};
    struct unit unit = {.at = at, .kind = DIGEST_FNV1A64, .label = labels[index % 3], .index = index};
    ck_assert_int_eq(hash_bytes(HASH_FNV1A64, faulty->bytes + at.off, (size_t)at.len, unit.digest, NULL), 0);
    return unit;
}

static inline struct unit_table sections_over(
    const struct faulty *faulty, const struct range *ranges, uint64_t count) {
    struct unit *list = calloc(count + 1, sizeof *list);
    for (uint64_t i = 0; i < count; i++)
        list[i] = section_over(faulty, ranges[i], i);
    return (struct unit_table){.list = list, .count = count};
}

static inline void table_free(struct unit_table *table) {
    free((void *)(uintptr_t)table->digests);
    free((void *)(uintptr_t)table->list);
}

/* ---- cancels that can be watched ---------------------------------------------------------------------- */

struct asker {
    atomic_bool stop;
    atomic_uint asked;
};

static inline bool asker_asked(void *arg) {
    struct asker *asker = arg;
    asker->asked++;
    return asker->stop;
}

/* Returns once the one who was given the cancel waits, which is when it asks. */
static inline void asker_await(struct asker *asker) {
    while (!asker->asked)
        sched_yield();
}

#endif
