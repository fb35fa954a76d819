/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where bytes come from: a file, memory, a part of another source, several sources one after another.
 * A reader asks for (offset, length) and cannot tell which.
 *
 * Threads: pread and stat may be called from any number of threads at once. A source is never mapped.
 */
#ifndef SOURCE_SOURCE_H
#define SOURCE_SOURCE_H

#include "base/err.h"

struct source;

struct source_stat {
    uint64_t size, ino, dev;
    int64_t atime_sec, mtime_sec, ctime_sec;
    uint32_t atime_nsec, mtime_nsec, ctime_nsec;
};

struct source_ops {
    /* Up to len bytes at off; 0 only at the end. Errors: IO. */
    int (*pread)(
        struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err);
    int (*stat)(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err);
    /* Hints that [off, off + len) will be read soon, or is not needed again. NULL: no such hints. */
    void (*advise)(struct source *source, uint64_t off, uint64_t len, bool needed);
    /* Opens the file `name` (no '/', no "..") that stands beside this one. NULL: nothing stands beside. */
    int (*sibling)(struct source *source, const char *name, struct source **ret_source, struct ckpt_err *err);
    /* CHANGED when it is not as it was opened. NULL: what stat tells is compared with `opened`. */
    int (*unchanged)(struct source *source, struct ckpt_err *err);
    /* Gives up what the implementation holds beyond its struct. NULL: nothing. */
    void (*close)(struct source *source);
};

struct source {
    const struct source_ops *ops;
    char *name;                /* for messages; owned by the source */
    uint64_t size;             /* when it was opened */
    struct source_stat opened; /* likewise */
};

/* A regular file. Errors: IO, FORMAT (a directory, a FIFO, a device, ...). */
int source_open_file(const char *path, struct source **ret_source, struct ckpt_err *err);
/* Over memory that outlives the source. */
int source_from_mem(
    const char *name, const void *bytes, uint64_t len, struct source **ret_source, struct ckpt_err *err);
/* [off, off + len) of under as a source of its own; under must outlive it and is not closed by it. INVAL when
 * under is smaller. */
int source_slice(
    struct source *under, uint64_t off, uint64_t len, struct source **ret_source, struct ckpt_err *err);
/* The parts one after another; takes the parts over (closes them, on failure too). Its times are the latest
 * of its parts. LIMIT when the sizes' sum passes 2^64. */
int source_concat(
    const char *name, struct source **parts, size_t count, struct source **ret_source, struct ckpt_err *err);

/* Exactly len bytes or an error: CHANGED (with the numbers) when the source ends before them. */
int source_read(struct source *source, uint64_t off, void *buf, size_t len, struct ckpt_err *err);
/* CHANGED when size or modification time are not those of the opening; 0 otherwise. */
int source_unchanged(struct source *source, struct ckpt_err *err);
/* Errors: CORRUPT (the name leaves the directory), NOENT (nothing stands beside this source), as
 * source_open_file. */
int source_sibling(struct source *source, const char *name, struct source **ret_source, struct ckpt_err *err);
void source_advise(struct source *source, uint64_t off, uint64_t len, bool needed);
void source_close(struct source *source); /* NULL is allowed */

/* ---- for implementations ---------------------------------------------------------------------------- */

/* A zeroed struct of `bytes` bytes that begins with a struct source, with ops and a copy of the name; to be
 * ended with source_close. */
int source_new(size_t bytes, const struct source_ops *ops, const char *name, struct source **ret_source,
    struct ckpt_err *err);

#endif
