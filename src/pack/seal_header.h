/* SPDX-License-Identifier: Apache-2.0 */
/* The header of an envelope that is being written: digests come in any order, the rest at the end. */
#ifndef PACK_SEAL_HEADER_H
#define PACK_SEAL_HEADER_H

#include "pack/seal.h"

struct seal_header {
    uint8_t *bytes; /* owned; whole pages, zeros where nothing was put */
    uint64_t len;
};

/* Bytes of the header of such an envelope. Errors: INVAL (chunks of 0 bytes), LIMIT. */
int seal_header_bytes(
    uint64_t payload_bytes, uint64_t chunk_bytes, uint64_t *ret_bytes, struct ckpt_err *err);

/* Errors: LIMIT (a longer header than is ever read), NOMEM. */
int seal_header_digests(struct seal_header *header, uint64_t first, uint64_t count,
    const uint8_t (*digests)[32], struct ckpt_err *err);
/* Everything but the digests; afterwards the header is complete. Errors: as both. */
int seal_header_finish(
    struct seal_header *header, const struct seal_plan *plan, uint64_t payload_bytes, struct ckpt_err *err);
void seal_header_free(struct seal_header *header);

#endif
