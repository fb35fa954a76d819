/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Blocks of this size hold the small pieces; a piece over a quarter of it gets a block of its own. */
#define BLOCK_BYTES ((size_t)256 * 1024)

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
    alignas(max_align_t) char bytes[];
};

static struct arena_block *new_block(struct arena *arena, size_t need) {
    size_t cap = need > BLOCK_BYTES / 4 ? need : BLOCK_BYTES;
    /* calloc: a large block's pages stay untouched until they are used. */
    struct arena_block *block = calloc(1, sizeof *block + cap);
    if (!block)
        return NULL;
    block->cap = cap;
    if (cap != need || !arena->blocks) {
        block->next = arena->blocks;
        arena->blocks = block;
    } else { /* keep filling the current block */
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    }
    return block;
}

static void *take(struct arena *arena, size_t len, size_t align) {
    if (arena->max && (len > arena->max || arena->used > arena->max - len))
        return NULL;
    struct arena_block *block = arena->blocks;
    size_t at = block ? (block->used + align - 1) / align * align : 0;
    if (!block || at > block->cap || len > block->cap - at) {
        block = new_block(arena, len);
        at = 0;
    }
    if (!block)
        return NULL;
    block->used = at + len;
    arena->used += len;
    return block->bytes + at;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size) {
    size_t len;
    if (__builtin_mul_overflow(count, size, &len) || len > SIZE_MAX - sizeof(struct arena_block))
        return NULL;
    return take(arena, len ? len : 1, alignof(max_align_t));
}

char *arena_text(struct arena *arena, const char *text, size_t len) {
    char *copy = len < SIZE_MAX - sizeof(struct arena_block) ? take(arena, len + 1, 1) : NULL;
    if (copy && len)
        memcpy(copy, text, len);
    return copy; /* zeroed, so the NUL is there */
}

void arena_free(struct arena *arena) {
    for (struct arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (struct arena){.max = arena->max};
}
