/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/cache.h"

#include "base/ovf.h"

#include <pthread.h>
#include <stdlib.h>

#define TRIAL_BLOCKS 128 /* of those that nobody asked for again: they stay in the processor's caches */

struct list {
    struct cache_block *newest, *oldest;
    uint64_t count;
};

struct cache {
    pthread_mutex_t lock;
    size_t block_bytes;
    uint64_t made, max; /* blocks */
    struct list trial, proven;
    struct cache_block *unused; /* made, neither listed nor in hand; by chain */
    size_t mask;                /* buckets - 1 */
    struct cache_block **buckets;
};

static size_t bucket_count(uint64_t max_blocks) {
    size_t count = 64;
    while (count < max_blocks && count < (size_t)1 << 20)
        count *= 2;
    return count;
}

int cache_new(size_t block_bytes, uint64_t max_blocks, struct cache **ret_cache, struct ckpt_err *err) {
    size_t count = bucket_count(max_blocks);
    struct cache *cache = calloc(1, sizeof *cache);
    struct cache_block **buckets = calloc(count, sizeof(struct cache_block *));
    if (!cache || !buckets) {
        free(cache);
        free(buckets);
        return err_set(err, CKPT_E_NOMEM, "no memory for the cache of verified blocks");
    }
    pthread_mutex_init(&cache->lock, NULL);
    cache->block_bytes = block_bytes;
    cache->max = max_blocks;
    cache->mask = count - 1;
    cache->buckets = buckets;
    *ret_cache = cache;
    return 0;
}

/* ---- lists and buckets (under the lock) -------------------------------------------------------------- */

/* Neighbouring blocks differ in high bits only: a multiplication spreads them. */
static struct cache_block **bucket_of(struct cache *cache, uint64_t key) {
    return &cache->buckets[(key * UINT64_C(0x9e3779b97f4a7c15) >> 40) & cache->mask];
}

static struct list *list_of(struct cache *cache, const struct cache_block *block) {
    return block->proven ? &cache->proven : &cache->trial;
}

/* Both directions of a list end in its own pointers. */
static void link_block(struct cache *cache, struct cache_block *block, bool spent) {
    struct list *list = list_of(cache, block);
    block->spent = spent;
    block->newer = spent ? list->oldest : NULL;
    block->older = spent ? NULL : list->newest;
    *(block->older ? &block->older->newer : &list->oldest) = block;
    *(block->newer ? &block->newer->older : &list->newest) = block;
    list->count++;
}

static void unlink_block(struct cache *cache, struct cache_block *block) {
    struct list *list = list_of(cache, block);
    *(block->newer ? &block->newer->older : &list->newest) = block->older;
    *(block->older ? &block->older->newer : &list->oldest) = block->newer;
    list->count--;
}

static struct cache_block *find(struct cache *cache, uint64_t key) {
    struct cache_block *block = *bucket_of(cache, key);
    while (block && block->key != key)
        block = block->chain;
    return block;
}

static void drop(struct cache *cache, struct cache_block *block) {
    struct cache_block **at = bucket_of(cache, block->key);
    while (*at != block)
        at = &(*at)->chain;
    *at = block->chain;
    unlink_block(cache, block);
}

/* ---- blocks to fill (under the lock) ----------------------------------------------------------------- */

static struct cache_block *take_unused(struct cache *cache) {
    struct cache_block *block = cache->unused;
    if (block)
        cache->unused = block->chain;
    return block;
}

/* The oldest that nobody holds. */
static struct cache_block *take_from(struct cache *cache, const struct list *list) {
    struct cache_block *block = list->oldest;
    while (block && block->holders > 1)
        block = block->newer;
    if (block)
        drop(cache, block);
    return block;
}

static struct cache_block *make(struct cache *cache) {
    struct cache_block *block = malloc(sizeof *block + cache->block_bytes);
    cache->made += block != NULL;
    return block;
}

static struct cache_block *take_any(struct cache *cache) {
    const struct list *trial = &cache->trial;
    bool reuse = trial->count >= TRIAL_BLOCKS || (trial->oldest && trial->oldest->spent);
    struct cache_block *block = take_unused(cache);
    if (!block && reuse)
        block = take_from(cache, trial);
    if (!block && cache->made < cache->max)
        block = make(cache);
    if (!block)
        block = take_from(cache, trial);
    if (!block)
        block = take_from(cache, &cache->proven);
    return block;
}

/* ---- calls ------------------------------------------------------------------------------------------- */

struct cache_block *cache_get(struct cache *cache, uint64_t key, bool spent) {
    pthread_mutex_lock(&cache->lock);
    struct cache_block *block = find(cache, key);
    if (block) {
        block->holders++;
        unlink_block(cache, block);
        block->proven = block->proven || !spent;
        link_block(cache, block, spent && !block->proven);
    }
    pthread_mutex_unlock(&cache->lock);
    return block;
}

struct cache_block *cache_take(struct cache *cache, uint64_t key, size_t len) {
    struct cache_block *block = NULL;
    if (len <= cache->block_bytes) {
        pthread_mutex_lock(&cache->lock);
        block = take_any(cache);
        pthread_mutex_unlock(&cache->lock);
    }
    bool loose = !block;
    if (loose)
        block = malloc(sizeof *block + len);
    if (block)
        *block = (struct cache_block){.key = key, .len = len, .holders = 1, .loose = loose};
    return block;
}

void cache_put(struct cache *cache, struct cache_block *block, bool spent) {
    pthread_mutex_lock(&cache->lock);
    if (!block->loose && !find(cache, block->key)) {
        struct cache_block **at = bucket_of(cache, block->key);
        block->chain = *at;
        *at = block;
        block->holders++;
        link_block(cache, block, spent);
    }
    pthread_mutex_unlock(&cache->lock);
}

void cache_release(struct cache *cache, struct cache_block *block) {
    if (block->loose) { /* never listed: nobody else has it */
        free(block);
        return;
    }
    pthread_mutex_lock(&cache->lock);
    if (--block->holders == 0) {
        block->chain = cache->unused;
        cache->unused = block;
    }
    pthread_mutex_unlock(&cache->lock);
}

void cache_free(struct cache *cache) {
    struct cache_block *block;
    if (!cache)
        return;
    while ((block = take_unused(cache)) || (block = take_from(cache, &cache->trial)) ||
           (block = take_from(cache, &cache->proven)))
        free(block);
    free(cache->buckets);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
