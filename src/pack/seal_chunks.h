/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks of a payload, hashed by all cores while they are copied. A thread takes a chunk (or a run of
 * small ones), and reads, writes and hashes it piece by piece: memory is a piece a thread, whatever the
 * chunks' size. A payload that is still arriving is followed as far as it came.
 */
#ifndef PACK_SEAL_CHUNKS_H
#define PACK_SEAL_CHUNKS_H

#include "base/err.h"

struct chunks {
    uint64_t chunk_bytes; /* 0 for an empty payload only */
    uint64_t bytes;       /* of the payload; 0 with `more` */
    /*
     * For a payload that arrives: waits a moment (so that others can be asked to stop) for what can be read
     * beyond *bytes, and tells how far it reaches and whether that is all. NULL: all of it is there.
     */
    int (*more)(void *arg, uint64_t *bytes, bool *ended, struct ckpt_err *err);
    /* Exactly len bytes at off of the payload. */
    int (*read)(void *arg, uint64_t off, void *buf, size_t len, struct ckpt_err *err);
    /* NULL: they are where they belong. */
    int (*write)(void *arg, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err);
    /* The digests of `count` chunks from number `first` on. One call at a time, in any order. */
    int (*digests)(
        void *arg, uint64_t first, uint64_t count, const uint8_t (*digests)[32], struct ckpt_err *err);
    void *arg;
};

/* more, read and write are called by any thread. Errors: theirs (of several, that of the earliest chunk),
 * INTR, NOMEM. options may be NULL; progress is told bytes. */
int chunks_run(const struct chunks *chunks, const struct ckpt_write_options *options, struct ckpt_err *err);

#endif
