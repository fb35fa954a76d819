/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to a parsed catalog: opening, pins (contract, manifest), and the judges of both readers. */
#ifndef OPEN_H
#define OPEN_H

#include "catalog/catalog.h"
#include "format/format.h"
#include "source/source.h"
#include "verify/witness.h"

struct opened {
    struct source *source;   /* what the catalog's ranges are about */
    struct witness *witness; /* NULL when strictly opened */
    struct catalog catalog;
};

/* Parses lazily: headers and indexes, and what options pin. On failure *opened is to be undone too. */
int open_lazily(
    const char *path, const struct ckpt_options *opt, struct opened *opened, struct ckpt_err *err);

/* What a strict opening counted. */
struct strict_tally {
    uint64_t units, bytes;
};

/* Parses as the reference readers do, hashing everything in their order. */
int open_strictly(const char *path, const struct ckpt_options *opt, struct opened *opened,
    struct strict_tally *ret_tally, struct ckpt_err *err);

void open_undo(struct opened *opened); /* closes and frees; a zeroed one is fine */

#endif
