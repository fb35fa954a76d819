/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a unit: read, hash, keep block digests. Memory does not grow with the unit. */
#ifndef VERIFY_PASS_H
#define VERIFY_PASS_H

#include "catalog/catalog.h"
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
 * another error. found gets the digest that was computed (also on a mismatch). sink, cancel, progress: NULL allowed.
 */
int pass_unit(struct source *source, const struct unit *unit, const struct pass_sink *sink, uint8_t found[32],
    const struct ckpt_cancel *cancel, const struct ckpt_progress *progress, struct ckpt_err *err);

/* All units of a table with all cores; the error is that of the first bad unit in table order. */
int pass_table(struct source *source, const struct unit_table *table, const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress, struct ckpt_err *err);

#endif
