/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/pool.h"

#include <stdlib.h>

#define ALIGNMENT 4096

void pool_init(struct pool *pool, uint64_t bytes) {
    uint64_t fit = bytes / POOL_BUFFER_BYTES;
    *pool = (struct pool){.max = fit < 2 ? 2 : fit < POOL_BUFFERS_MAX ? (unsigned)fit : POOL_BUFFERS_MAX};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->given_back, NULL);
}

void pool_free(struct pool *pool) {
    while (pool->idle)
        free(pool->buffers[--pool->idle]);
    pthread_cond_destroy(&pool->given_back);
    pthread_mutex_destroy(&pool->lock);
}

/* Called with the lock held, and returns without it. */
static void *take(struct pool *pool) {
    void *buffer = pool->idle ? pool->buffers[--pool->idle] : NULL;
    pool->used++;
    pthread_mutex_unlock(&pool->lock);
    if (!buffer)
        buffer = aligned_alloc(ALIGNMENT, POOL_BUFFER_BYTES);
    if (!buffer)
        pool_give(pool, NULL);
    return buffer;
}

void *pool_try(struct pool *pool) {
    pthread_mutex_lock(&pool->lock);
    if (pool->used < pool->max / 2)
        return take(pool);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void *pool_wait(struct pool *pool) {
    pthread_mutex_lock(&pool->lock);
    while (pool->used == pool->max)
        pthread_cond_wait(&pool->given_back, &pool->lock);
    return take(pool);
}

void pool_give(struct pool *pool, void *buffer) {
    pthread_mutex_lock(&pool->lock);
    pool->used--;
    if (buffer)
        pool->buffers[pool->idle++] = buffer;
    pthread_cond_signal(&pool->given_back);
    pthread_mutex_unlock(&pool->lock);
}
