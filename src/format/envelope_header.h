/* SPDX-License-Identifier: Apache-2.0 */
/* The envelope's header: read, and made of the figures that decide it. */
#ifndef FORMAT_ENVELOPE_HEADER_H
#define FORMAT_ENVELOPE_HEADER_H

#include "catalog/catalog.h"
#include "format/envelope_layout.h"
#include "source/source.h"

/*
 * The layout that a payload in chunks of that size has. False when there is none: chunks of 0 bytes of a
 * payload that is not empty, or a header past 2^64.
 */
bool envelope_layout_of(uint64_t payload_bytes, uint64_t chunk_bytes, struct envelope_layout *ret_layout);
uint64_t envelope_chunks(const struct envelope_layout *layout);
/* As the header's first bytes have it. */
void envelope_layout_put(const struct envelope_layout *layout, uint8_t out[ENVELOPE_LAYOUT_BYTES]);

/*
 * Reads the header and checks that its figures agree with each other and with the source's size; all but the
 * manifest is filled in. Errors: MISMATCH ("truncated", "layout"), LIMIT, IO, CHANGED, NOMEM.
 */
int envelope_header_read(
    struct source *source, struct arena *arena, struct envelope **ret_envelope, struct ckpt_err *err);

#endif
