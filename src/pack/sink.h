/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A large file that is written once, by many threads, around the page cache where the file system lets us:
 * the bytes have to be on the disk before the file may take its name, so copying them to the cache first
 * costs time, and what others have there.
 */
#ifndef PACK_SINK_H
#define PACK_SINK_H

#include "base/err.h"

struct sink {
    int file, direct; /* the file, and a second way into it; -1: there is none */
    const char *name; /* for messages */
    uint64_t base;    /* where offset 0 is in the file */
};

/* bytes: how many will be written. The sink borrows file and name, and is closed in any case. */
struct sink sink_open(int file, const char *name, uint64_t base, uint64_t bytes);
/* Errors: IO. */
int sink_write(const struct sink *sink, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err);
void sink_close(struct sink *sink);

#endif
