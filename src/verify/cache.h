/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verified blocks that are kept a while. A block's key is the absolute offset of its first byte. Its bytes
 * are never changed once it was put.
 *
 * Memory is used again, not given back: fresh pages are dear. New blocks pass through a few that are reused
 * soon; only those that are asked for again spread over the whole of the cache, least recently used out
 * first.
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
    struct cache_block *chain, *newer, *older; /* from here on the cache's own */
    unsigned holders;                          /* the cache itself is one while it lists the block */
    bool proven;                               /* it was asked for again */
    bool spent;                                /* nobody is likely to ask for it again */
    bool loose;                                /* beyond the bound: freed when it is released */
    uint8_t bytes[];
};

/* At most max_blocks of at most block_bytes each. Errors: NOMEM. */
int cache_new(size_t block_bytes, uint64_t max_blocks, struct cache **ret_cache, struct ckpt_err *err);
void cache_free(struct cache *cache); /* after all blocks were released; NULL is allowed */

/* The block of this key, in hand; NULL when it is not there. spent: it will be read to its end, as by
 * somebody who goes on behind it. */
struct cache_block *cache_get(struct cache *cache, uint64_t key, bool spent);
/* A block to be filled, in hand, not listed; NULL when there is no memory. */
struct cache_block *cache_take(struct cache *cache, uint64_t key, size_t len);
/* Lists a block that was filled and verified. It stays in hand. */
void cache_put(struct cache *cache, struct cache_block *block, bool spent);
void cache_release(struct cache *cache, struct cache_block *block);

#endif
