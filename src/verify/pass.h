/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a unit: read, hash, keep block digests. Memory does not grow with the unit. */
#ifndef VERIFY_PASS_H
#define VERIFY_PASS_H

#include "catalog/catalog.h"
#include "hash/hash.h"
#include "source/source.h"

/* Gets every block of the unit in order (all of block_bytes but the last one). */
struct pass_sink {
    uint64_t block_bytes;
    void (*block)(void *arg, uint64_t index, const void *bytes, size_t len);
    void *arg;
};

/*
 * Hashes the unit and compares: 0, or the error of its mismatch (CORRUPT with the words "section payload
 * checksum mismatch" for FNV-1a, MISMATCH with "chunk-mismatch N" for SHA-256, both digests in msg), or
 * another error: CORRUPT with the words "source ended" when the source ends inside the unit, IO, INTR, NOMEM.
 * found gets the digest that was computed (also on a mismatch). sink, cancel, progress: NULL allowed;
 * progress is told bytes of this unit.
 */
int pass_unit(struct source *source, const struct unit *unit, const struct pass_sink *sink, uint8_t found[32],
    const struct ckpt_cancel *cancel, const struct ckpt_progress *progress, struct ckpt_err *err);

/* All units of a table with all cores; the error is that of the first bad unit in table order. */
int pass_table(struct source *source, const struct unit_table *table, const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress, struct ckpt_err *err);

/* ---- the pieces that the guard builds on ------------------------------------------------------------- */

/* A pass that can stop and go on later where it stopped. Belongs to one thread at a time. */
struct pass {
    struct source *source;
    struct unit unit;
    struct pass_sink sink; /* block NULL: none */
    struct hash_state *hash;
    uint64_t done, blocks; /* bytes hashed, blocks given to the sink */
    bool differs;          /* it came to its end, and the digest is another one */
};
int pass_begin(struct pass *pass, struct source *source, const struct unit *unit,
    const struct pass_sink *sink, struct ckpt_err *err);
/* As pass_unit. After INTR it may be called again and goes on. */
int pass_run(struct pass *pass, uint8_t found[32], const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress, struct ckpt_err *err);
void pass_end(struct pass *pass);

/*
 * Hashes `count` units from `first` on whose bytes follow each other, and tells each outcome (tell NULL:
 * nobody). Goes through all of them; the error is that of the first bad one.
 */
struct pass_tell {
    void (*outcome)(void *arg, uint64_t index, bool holds, const uint8_t found[32]);
    void *arg;
};
int pass_bytes(const struct unit_table *table, uint64_t first, uint64_t count, const void *bytes,
    const struct pass_tell *tell, struct ckpt_err *err);

/* Compares: 0 or the mismatch's error. found NULL: it is known to differ, but not by what. */
int pass_judge(const struct unit *unit, const uint8_t found[32], struct ckpt_err *err);
/* Gives a failed read inside the unit its context; CHANGED becomes CORRUPT: a digest vouched for more bytes.
 */
int pass_read_failed(const struct unit *unit, int rc, struct ckpt_err *err);
/* "weights section" or "chunk 7". */
#define PASS_NAME_BYTES 80
const char *pass_name(const struct unit *unit, char out[PASS_NAME_BYTES]);
bool pass_cancelled(const struct ckpt_cancel *cancel); /* NULL: false */

#endif
