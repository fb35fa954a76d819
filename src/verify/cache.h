/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verified blocks that are kept a while, least recently used out first. A block's key is the absolute offset
 * of its first byte. Its bytes are never changed once it was put.
 *
 * Threads: every call from any thread. A block in hand stays valid until it is released, also when the cache
 * has dropped it: beyond the bound there are at most the blocks in hand.
 */
#ifndef VERIFY_CACHE_H
#define VERIFY_CACHE_H

#include "base/err.h"

struct cache;

struct cache_block {
    uint64_t key;
    size_t len;
    struct cache_block *chain, *newer, *older; /* the cache's own */
    unsigned holders;                          /* likewise; the cache itself is one while it lists it */
    uint8_t bytes[];
};

/* max_bytes bounds what is listed. Errors: NOMEM. */
int cache_new(uint64_t max_bytes, struct cache **ret_cache, struct ckpt_err *err);
void cache_free(struct cache *cache); /* after all blocks were released; NULL is allowed */

/* The block of this key, in hand; NULL when it is not there. */
struct cache_block *cache_get(struct cache *cache, uint64_t key);
/* A block to be filled, in hand, not listed; NULL when there is no memory. */
struct cache_block *cache_block_new(uint64_t key, size_t len);
/* Lists a block that was filled and verified. It stays in hand. */
void cache_put(struct cache *cache, struct cache_block *block);
void cache_release(struct cache *cache, struct cache_block *block);

#endif
