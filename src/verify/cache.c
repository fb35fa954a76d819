/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/cache.h"

#include <pthread.h>
#include <stdlib.h>

struct cache {
    pthread_mutex_t lock;
    uint64_t used, max;
    struct cache_block *newest, *oldest;
    size_t mask; /* buckets - 1 */
    struct cache_block **buckets;
};

static size_t bucket_count(uint64_t max_bytes) {
    size_t count = 64;
    while (count < max_bytes / 32768 && count < (size_t)1 << 20)
        count *= 2;
    return count;
}

int cache_new(uint64_t max_bytes, struct cache **ret_cache, struct ckpt_err *err) {
    size_t count = bucket_count(max_bytes);
    struct cache *cache = calloc(1, sizeof *cache);
    struct cache_block **buckets = calloc(count, sizeof(struct cache_block *));
    if (!cache || !buckets) {
        free(cache);
        free(buckets);
        return err_set(err, CKPT_E_NOMEM, "no memory for the cache of verified blocks");
    }
    pthread_mutex_init(&cache->lock, NULL);
    cache->max = max_bytes;
    cache->mask = count - 1;
    cache->buckets = buckets;
    *ret_cache = cache;
    return 0;
}

/* Neighbouring blocks differ in high bits only: a multiplication spreads them. */
static struct cache_block **bucket_of(struct cache *cache, uint64_t key) {
    return &cache->buckets[(key * UINT64_C(0x9e3779b97f4a7c15) >> 40) & cache->mask];
}

static uint64_t cost(const struct cache_block *block) {
    return block->len + sizeof *block;
}

/* Both directions of the list end in the cache's own pointers. */
static void link_newest(struct cache *cache, struct cache_block *block) {
    block->newer = NULL;
    block->older = cache->newest;
    *(block->older ? &block->older->newer : &cache->oldest) = block;
    cache->newest = block;
}

static void unlink_block(struct cache *cache, struct cache_block *block) {
    *(block->newer ? &block->newer->older : &cache->newest) = block->older;
    *(block->older ? &block->older->newer : &cache->oldest) = block->newer;
}

/* One holder less. Returns the block when it is to be freed (outside of the lock). */
static struct cache_block *let_go(struct cache_block *block) {
    return --block->holders ? NULL : block;
}

static struct cache_block *drop(struct cache *cache, struct cache_block *block) {
    struct cache_block **at = bucket_of(cache, block->key);
    while (*at != block)
        at = &(*at)->chain;
    *at = block->chain;
    unlink_block(cache, block);
    cache->used -= cost(block);
    return let_go(block);
}

static struct cache_block *find(struct cache *cache, uint64_t key) {
    struct cache_block *block = *bucket_of(cache, key);
    while (block && block->key != key)
        block = block->chain;
    return block;
}

struct cache_block *cache_get(struct cache *cache, uint64_t key) {
    pthread_mutex_lock(&cache->lock);
    struct cache_block *block = find(cache, key);
    if (block) {
        block->holders++;
        unlink_block(cache, block);
        link_newest(cache, block);
    }
    pthread_mutex_unlock(&cache->lock);
    return block;
}

struct cache_block *cache_block_new(uint64_t key, size_t len) {
    struct cache_block *block = malloc(sizeof *block + len);
    if (block)
        *block = (struct cache_block){.key = key, .len = len, .holders = 1};
    return block;
}

static void list(struct cache *cache, struct cache_block *block) {
    struct cache_block **at = bucket_of(cache, block->key);
    block->chain = *at;
    *at = block;
    link_newest(cache, block);
    block->holders++;
    cache->used += cost(block);
}

void cache_put(struct cache *cache, struct cache_block *block) {
    struct cache_block *dead = NULL;
    pthread_mutex_lock(&cache->lock);
    if (cost(block) <= cache->max && !find(cache, block->key)) {
        list(cache, block);
        while (cache->used > cache->max) {
            struct cache_block *gone = drop(cache, cache->oldest);
            if (gone) {
                gone->chain = dead;
                dead = gone;
            }
        }
    }
    pthread_mutex_unlock(&cache->lock);
    while (dead) {
        struct cache_block *next = dead->chain;
        free(dead);
        dead = next;
    }
}

void cache_release(struct cache *cache, struct cache_block *block) {
    pthread_mutex_lock(&cache->lock);
    struct cache_block *dead = let_go(block);
    pthread_mutex_unlock(&cache->lock);
    free(dead);
}

void cache_free(struct cache *cache) {
    if (!cache)
        return;
    while (cache->newest)
        free(drop(cache, cache->newest));
    free(cache->buckets);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
