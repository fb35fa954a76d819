/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The envelope's header as numbers: what its reader, its judge and its writer share. All integers are u64,
 * little-endian; sizes are bytes.
 */
#ifndef FORMAT_ENVELOPE_LAYOUT_H
#define FORMAT_ENVELOPE_LAYOUT_H

#include <stdint.h>

#define ENVELOPE_MAGIC "ALPHACKP"
#define ENVELOPE_MAGIC_BYTES 8
#define ENVELOPE_VERSION 1
#define ENVELOPE_PAGE_BYTES 4096 /* the header is whole pages */

#define ENVELOPE_LAYOUT_BYTES 56 /* magic to tail bytes: what payload and chunk bytes decide */
#define ENVELOPE_COUNTERS_OFFSET 56
#define ENVELOPE_IDENTITY_OFFSET 72
#define ENVELOPE_IDENTITIES 4 /* schema, learner, data, seed */
#define ENVELOPE_DIGEST_BYTES 32
#define ENVELOPE_DIGESTS_OFFSET 200 /* of the chunks, one after another; zeros follow to the page's end */

/* 33 million chunks: readers and writers keep a header in memory. */
#define ENVELOPE_HEADER_BYTES_MAX ((uint64_t)1 << 30)

/* What follows the magic and goes by payload and chunk bytes. */
struct envelope_layout {
    uint64_t version, header_bytes, payload_bytes, chunk_bytes, full_chunks, tail_bytes;
};

#endif
