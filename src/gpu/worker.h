/* SPDX-License-Identifier: Apache-2.0 */
/* What the worker's steps share. All are called with the lock held, and give it up while they wait. */
#ifndef GPU_WORKER_H
#define GPU_WORKER_H

#include "gpu/client_own.h"

/* One line of the log, unless it is us who end the helper. */
void worker_say(struct gpu *gpu, const char *line);
void worker_say_device(struct gpu *gpu, const struct ckpt_err *err);
/* Everybody who waits gets the same answer: the next one to ask tries again. */
void worker_fail_all(struct gpu *gpu, const struct ckpt_err *err);
/* After an error that leaves no session: ends it, and adds how the helper ended. */
void worker_lose(struct gpu *gpu, struct ckpt_err *err);
/* What the helper said that it took from the device or gave back. */
void worker_count_memory(struct gpu *gpu, uint64_t taken, uint64_t given);

/* Loads the copy that is next, refuses it, or dooms what must go for it, in which case it stays the next. */
void worker_load(struct gpu *gpu, struct copy *copy);

#endif
