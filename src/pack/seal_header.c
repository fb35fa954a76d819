/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/seal_header.h"

#include "base/ovf.h"
#include "format/envelope_layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHUNKS_MAX ((ENVELOPE_HEADER_BYTES_MAX - ENVELOPE_DIGESTS_OFFSET) / ENVELOPE_DIGEST_BYTES)

static uint64_t bytes_for(uint64_t chunks) { /* chunks <= CHUNKS_MAX */
    uint64_t bytes = ENVELOPE_DIGESTS_OFFSET + ENVELOPE_DIGEST_BYTES * chunks;
    return (bytes + ENVELOPE_PAGE_BYTES - 1) / ENVELOPE_PAGE_BYTES * ENVELOPE_PAGE_BYTES;
}

static int too_many(uint64_t chunks, struct ckpt_err *err) {
    return err_set(err, CKPT_E_LIMIT,
        "%" PRIu64 " chunks, at most %" PRIu64 " fit a header of %" PRIu64 " bytes", chunks, CHUNKS_MAX,
        ENVELOPE_HEADER_BYTES_MAX);
}

int seal_header_bytes(
    uint64_t payload_bytes, uint64_t chunk_bytes, uint64_t *ret_bytes, struct ckpt_err *err) {
    if (!chunk_bytes && payload_bytes)
        return err_set(
            err, CKPT_E_INVAL, "chunks of 0 bytes for a payload of %" PRIu64 " bytes", payload_bytes);
    uint64_t chunks = chunk_bytes ? payload_bytes / chunk_bytes + (payload_bytes % chunk_bytes != 0) : 0;
    if (chunks > CHUNKS_MAX)
        return too_many(chunks, err);
    *ret_bytes = bytes_for(chunks);
    return 0;
}

/* Doubles, so that digests that come one after another cost little. */
static int grow(struct seal_header *header, uint64_t len, struct ckpt_err *err) {
    if (len <= header->len)
        return 0;
    uint64_t next = ovf_min(ovf_max(len, 2 * header->len), ENVELOPE_HEADER_BYTES_MAX);
    uint8_t *bytes = realloc(header->bytes, next);
    if (!bytes)
        return err_set(err, CKPT_E_NOMEM, "no memory for a header of %" PRIu64 " bytes", next);
    memset(bytes + header->len, 0, next - header->len);
    *header = (struct seal_header){bytes, next};
    return 0;
}

int seal_header_digests(struct seal_header *header, uint64_t first, uint64_t count,
    const uint8_t (*digests)[32], struct ckpt_err *err) {
    if (first > CHUNKS_MAX || count > CHUNKS_MAX - first)
        return too_many(first + count, err);
    int rc = grow(header, bytes_for(first + count), err);
    if (!rc)
        memcpy(header->bytes + ENVELOPE_DIGESTS_OFFSET + ENVELOPE_DIGEST_BYTES * first, digests,
            ENVELOPE_DIGEST_BYTES * count);
    return rc;
}

static void put_numbers(uint8_t *out, const uint64_t *values, size_t count) {
    for (size_t i = 0; i < 8 * count; i++)
        out[i] = (uint8_t)(values[i / 8] >> 8 * (i % 8));
}

int seal_header_finish(
    struct seal_header *header, const struct seal_plan *plan, uint64_t payload_bytes, struct ckpt_err *err) {
    uint64_t len, chunk = plan->chunk_bytes;
    int rc = seal_header_bytes(payload_bytes, chunk, &len, err);
    if (!rc)
        rc = grow(header, len, err);
    if (rc)
        return rc;
    const uint64_t layout[] = {ENVELOPE_VERSION, len, payload_bytes, chunk, chunk ? payload_bytes / chunk : 0,
        chunk ? payload_bytes % chunk : 0, plan->updates, plan->invocations};
    header->len = len;
    memcpy(header->bytes, ENVELOPE_MAGIC, ENVELOPE_MAGIC_BYTES);
    put_numbers(header->bytes + ENVELOPE_MAGIC_BYTES, layout, sizeof layout / sizeof *layout);
    memcpy(header->bytes + ENVELOPE_IDENTITY_OFFSET, plan->identity_sha256, sizeof plan->identity_sha256);
    return 0;
}

void seal_header_free(struct seal_header *header) {
    free(header->bytes);
    *header = (struct seal_header){0};
}
