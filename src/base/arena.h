/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once. Not thread-safe; fill it on one thread, then share it read-only. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena {
    struct arena_block *blocks;
    uint64_t used; /* bytes handed out so far */
    uint64_t max;  /* 0: no cap */
};

/* count * size bytes, zeroed, aligned for any type; NULL when there is no memory or the cap is passed. */
void *arena_alloc(struct arena *arena, size_t count, size_t size);
/* A copy of len bytes plus a NUL. Packed: not aligned. */
char *arena_text(struct arena *arena, const char *text, size_t len);
void arena_free(struct arena *arena);

#endif
