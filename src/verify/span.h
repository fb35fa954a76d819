/* SPDX-License-Identifier: Apache-2.0 */
/* Which unit holds an offset, and which neighbouring units may be read at once. Pure. */
#ifndef VERIFY_SPAN_H
#define VERIFY_SPAN_H

#include "catalog/catalog.h"

/* A unit no larger than this is small: read whole, and checked by its own digest at every read. */
#define SPAN_SMALL_BYTES ((uint64_t)16 * 1024)

/* The unit that holds the byte at off; false when none does. Units without bytes hold nothing. */
bool span_find(const struct unit_table *table, uint64_t off, uint64_t *ret_index);

/*
 * How many units from `first` on are small, follow each other in the source without a gap, and together have
 * at most max_bytes (one small unit may have more). 0: `first` is not small.
 */
uint64_t span_small(const struct unit_table *table, uint64_t first, uint64_t max_bytes);

/* Bytes of `count` units from `first` on that follow each other. */
uint64_t span_bytes(const struct unit_table *table, uint64_t first, uint64_t count);

/* INVAL unless every unit lies inside size bytes and the table's figures agree; *ret_bytes is their sum. */
int span_check(const struct unit_table *table, uint64_t size, uint64_t *ret_bytes, struct ckpt_err *err);

#endif
