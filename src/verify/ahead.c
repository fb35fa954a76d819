/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/ahead.h"

#include "base/ovf.h"
#include "verify/span.h"

#define UNITS 16                      /* passes begun for one request */
#define UNIT_MAX ((uint64_t)64 << 20) /* a longer unit waits until its turn comes */

/* How far behind a request passes are begun: the further the longer its stream is, so that somebody who looks
 * at the first bytes only does not keep others waiting. */
static uint64_t reach(const struct ahead *ahead, uint64_t streamed) {
    return ovf_min(4 * streamed, ahead->reach_max);
}

/* Enters the request; how much its stream, if it goes on where an earlier one ended, has read before. */
static uint64_t follow(struct ahead *ahead, uint64_t off, uint64_t end) {
    struct ahead_stream *stream = ahead->streams;
    for (unsigned i = 0; i < AHEAD_STREAMS; i++, stream++) {
        uint64_t start = atomic_load_explicit(&stream->start, memory_order_relaxed);
        if (atomic_load_explicit(&stream->end, memory_order_relaxed) != off || start >= off)
            continue;
        atomic_store_explicit(&stream->end, end, memory_order_relaxed);
        return off - start;
    }
    unsigned oldest = atomic_fetch_add_explicit(&ahead->next, 1, memory_order_relaxed);
    stream = &ahead->streams[oldest % AHEAD_STREAMS];
    atomic_store_explicit(&stream->start, off, memory_order_relaxed);
    atomic_store_explicit(&stream->end, end, memory_order_relaxed);
    return 0;
}

void ahead_begin(struct ahead *ahead, struct jobs *jobs, const struct jobs_over *over, uint64_t index,
    uint64_t off, uint64_t end) {
    uint64_t behind = reach(ahead, follow(ahead, off, end));
    struct range first = unit_get(over->table, index).at;
    if (behind == 0 && end <= first.off + first.len)
        return; /* whoever needs it begins it */
    for (uint64_t i = index; i < over->table->count && i - index < UNITS; i++) {
        struct range at = unit_get(over->table, i).at;
        if (at.off >= end && at.off - end >= behind)
            break;
        bool fits = i == index || at.len <= (at.off < end ? UNIT_MAX : ahead->reach_max);
        if (fits && at.len > SPAN_SMALL_BYTES && ledger_state(over->ledger, i) == UNIT_UNKNOWN)
            jobs_begin(jobs, i);
    }
}
