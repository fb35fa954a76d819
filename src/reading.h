/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint that is read to write another: opened lazily, everything that was parsed of it vouched for,
 * and its bytes behind a source that verifies whatever is read through it.
 */
#ifndef READING_H
#define READING_H

#include "ckpt.h"

struct reading {
    struct ckpt *ckpt;
    struct source *verified; /* the whole source by its own offsets, as in struct range and tensor_range */
};

/*
 * Opens `path`. Errors: as ckpt_open; CORRUPT when a part that was parsed (an index, a document) is damaged
 * or is not what the digests vouch for; INTR. options may be NULL; its cancel serves the reads too and must
 * outlive the reading.
 */
int reading_open(const char *path, const struct ckpt_write_options *options, struct reading *ret_reading,
    struct ckpt_err *err);
void reading_close(struct reading *reading); /* a zeroed one is allowed */

/* Vouches as reading_open does, for a checkpoint that is read through a source that verifies by itself. */
int reading_vouch(struct ckpt *ckpt, struct source *by, struct ckpt_err *err);

#endif
