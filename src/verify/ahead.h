/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes that are begun before they are needed: over the units that a request spans, so that they run beside
 * each other, and behind it when it goes on where an earlier request ended.
 *
 * Threads: every call from any thread.
 */
#ifndef VERIFY_AHEAD_H
#define VERIFY_AHEAD_H

#include "verify/jobs.h"

#include <stdatomic.h>

#define AHEAD_STREAMS 16
#define AHEAD_CORE_BYTES ((uint64_t)32 << 20)

/* Requests that go on where the one before ended. */
struct ahead_stream {
    _Atomic uint64_t start, end;
};

/* The latest streams. Zeroed but for the reach: none. What a race mixes up costs one step ahead, or begins
 * one too much. */
struct ahead {
    struct ahead_stream streams[AHEAD_STREAMS];
    atomic_uint next;   /* to be forgotten */
    uint64_t reach_max; /* bytes behind a request in which passes are begun: AHEAD_CORE_BYTES for each core */
};

/* For a request [off, end) that begins in unit `index`. */
void ahead_begin(struct ahead *ahead, struct jobs *jobs, const struct jobs_over *over, uint64_t index,
    uint64_t off, uint64_t end);

#endif
