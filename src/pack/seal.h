/* SPDX-License-Identifier: Apache-2.0 */
/* Writes envelopes, and takes payloads out of them again: one pass, all cores. */
#ifndef PACK_SEAL_H
#define PACK_SEAL_H

#include "base/err.h"
#include "catalog/catalog.h"
#include "source/source.h"

struct seal_plan {
    uint8_t identity_sha256[4][32]; /* schema, learner, data, seed */
    uint64_t chunk_bytes, updates, invocations;
    bool sized; /* the payload must have payload_bytes */
    uint64_t payload_bytes;
};

/*
 * Reads `payload` from its position to its end and writes it with its header to the file `to`.
 *
 * Memory: the header (32 bytes a chunk) and 2 MiB a core. The size of a regular file, or that of the plan,
 * says how long the header will be. Otherwise the payload is written behind a header of one page, and room
 * for a longer one (more than 121 chunks) is made at the end: by the file system where it can insert pages
 * (ext4, XFS), else by moving the payload, which costs reading and writing it once more.
 *
 * Errors: IO, INVAL (chunks of 0 bytes), MISMATCH (not the plan's size), LIMIT (too many chunks), CHANGED (a
 * regular file changed meanwhile), INTR, NOMEM. options may be NULL.
 */
int seal(int payload, const struct seal_plan *plan, const char *to, const struct ckpt_write_options *options,
    struct ckpt_err *err);

/* Writes the payload of an envelope whose header was read and judged to the file `to`, each chunk compared
 * with its digest. Errors: IO, MISMATCH ("chunk-mismatch N", of the first bad chunk), CHANGED, INTR, NOMEM.
 */
int unseal(struct source *source, const struct envelope *envelope, const char *to,
    const struct ckpt_write_options *options, struct ckpt_err *err);

#endif
