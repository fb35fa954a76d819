/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers for what is read: few, whatever the number of readers, and used again. Who may have to wait for
 * a digest should not hold one meanwhile: half of them are for those who do not.
 * Threads: every call but pool_init and pool_free from any thread.
 */
#ifndef FUSE_POOL_H
#define FUSE_POOL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_BUFFER_BYTES ((size_t)1 << 20) /* the largest request */
#define POOL_BUFFERS_MAX 16

struct pool {
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t given_back;
    unsigned max, used;
    unsigned idle; /* buffers that nobody uses, the last one to be used next: it is in the core's cache */
    void *buffers[POOL_BUFFERS_MAX];
};

/* As many buffers as fit into `bytes`, but at least two; they are made when they are needed. */
void pool_init(struct pool *pool, uint64_t bytes);
void pool_free(struct pool *pool); /* all are given back */

/* A buffer at once while less than half of them are used; NULL otherwise, or without memory. */
void *pool_try(struct pool *pool);
/* A buffer, when there is one; NULL: no memory. */
void *pool_wait(struct pool *pool);
void pool_give(struct pool *pool, void *buffer);

#endif
