/* SPDX-License-Identifier: Apache-2.0 */
#include "format/envelope_header.h"

#include "base/ovf.h"
#include "base/rd.h"

#include <inttypes.h>
#include <string.h>

/* ---- the layout ------------------------------------------------------------------------------------- */

uint64_t envelope_chunks(const struct envelope_layout *layout) {
    return layout->full_chunks + (layout->tail_bytes != 0);
}

/* Digests and what stands before them, in whole pages. */
static bool header_bytes(uint64_t chunks, uint64_t *ret_bytes) {
    uint64_t bytes;
    if (!ovf_mul(chunks, ENVELOPE_DIGEST_BYTES, &bytes) ||
        !ovf_add(bytes, ENVELOPE_DIGESTS_OFFSET + ENVELOPE_PAGE_BYTES - 1, &bytes))
        return false;
    *ret_bytes = bytes / ENVELOPE_PAGE_BYTES * ENVELOPE_PAGE_BYTES;
    return true;
}

bool envelope_layout_of(uint64_t payload_bytes, uint64_t chunk_bytes, struct envelope_layout *ret_layout) {
    struct envelope_layout layout = {
        .version = ENVELOPE_VERSION, .payload_bytes = payload_bytes, .chunk_bytes = chunk_bytes};
    if (!chunk_bytes && payload_bytes)
        return false;
    if (chunk_bytes) {
        layout.full_chunks = payload_bytes / chunk_bytes;
        layout.tail_bytes = payload_bytes % chunk_bytes;
    }
    if (!header_bytes(envelope_chunks(&layout), &layout.header_bytes))
        return false;
    *ret_layout = layout;
    return true;
}

static void put_u64(uint8_t *out, uint64_t value) {
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

void envelope_layout_put(const struct envelope_layout *layout, uint8_t out[ENVELOPE_LAYOUT_BYTES]) {
    memcpy(out, ENVELOPE_MAGIC, ENVELOPE_MAGIC_BYTES);
    put_u64(out + 8, layout->version);
    put_u64(out + 16, layout->header_bytes);
    put_u64(out + 24, layout->payload_bytes);
    put_u64(out + 32, layout->chunk_bytes);
    put_u64(out + 40, layout->full_chunks);
    put_u64(out + 48, layout->tail_bytes);
}

static struct envelope_layout layout_fields(const uint8_t *bytes) {
    struct rd rd = rd_over(bytes, ENVELOPE_LAYOUT_BYTES);
    struct envelope_layout layout;
    rd_skip(&rd, ENVELOPE_MAGIC_BYTES);
    layout.version = rd_u64(&rd);
    layout.header_bytes = rd_u64(&rd);
    layout.payload_bytes = rd_u64(&rd);
    layout.chunk_bytes = rd_u64(&rd);
    layout.full_chunks = rd_u64(&rd);
    layout.tail_bytes = rd_u64(&rd);
    return layout;
}

/* ---- checking --------------------------------------------------------------------------------------- */

static int check_size(const struct envelope_layout *found, uint64_t size, struct ckpt_err *err) {
    uint64_t wanted;
    if (!ovf_add(found->header_bytes, found->payload_bytes, &wanted))
        return err_verdict(err, CKPT_E_MISMATCH, "truncated",
            "%" PRIu64 " bytes, %" PRIu64 " of header and %" PRIu64 " of payload pass 2^64", size,
            found->header_bytes, found->payload_bytes);
    if (wanted == size)
        return 0;
    return err_verdict(err, CKPT_E_MISMATCH, "truncated",
        "%" PRIu64 " bytes, header and payload take %" PRIu64, size, wanted);
}

/* The figures against those that follow from payload and chunk bytes. */
static int check_figures(const struct envelope_layout *found, struct ckpt_err *err) {
    struct envelope_layout wanted;
    if (!envelope_layout_of(found->payload_bytes, found->chunk_bytes, &wanted))
        return err_verdict(err, CKPT_E_MISMATCH, "layout",
            "a payload of %" PRIu64 " bytes in chunks of %" PRIu64, found->payload_bytes, found->chunk_bytes);
    const struct {
        const char *name;
        uint64_t found, wanted;
    } fields[] = {
        {"version", found->version, wanted.version},
        {"header bytes", found->header_bytes, wanted.header_bytes},
        {"full chunks", found->full_chunks, wanted.full_chunks},
        {"tail bytes", found->tail_bytes, wanted.tail_bytes},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].found != fields[i].wanted)
            return err_verdict(err, CKPT_E_MISMATCH, "layout", "%s %" PRIu64 ", not %" PRIu64, fields[i].name,
                fields[i].found, fields[i].wanted);
    return 0;
}

static int check_start(const uint8_t *start, uint64_t size, struct ckpt_err *err) {
    const struct envelope_layout found = layout_fields(start);
    int rc = check_size(&found, size, err);
    if (rc)
        return rc;
    if (memcmp(start, ENVELOPE_MAGIC, ENVELOPE_MAGIC_BYTES))
        return err_verdict(err, CKPT_E_MISMATCH, "layout", "the magic is not %s", ENVELOPE_MAGIC);
    rc = check_figures(&found, err);
    if (!rc && found.header_bytes > ENVELOPE_HEADER_BYTES_MAX)
        return err_set(err, CKPT_E_LIMIT, "a header of %" PRIu64 " bytes, at most %" PRIu64 " are read",
            found.header_bytes, ENVELOPE_HEADER_BYTES_MAX);
    return rc;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static uint64_t find_stray(const uint8_t *header, uint64_t from, uint64_t end) {
    while (from < end && !header[from])
        from++;
    return from < end ? from : 0;
}

static void fill(struct envelope *envelope, const uint8_t *header) {
    const struct envelope_layout layout = layout_fields(header);
    struct rd rd = rd_over(header + ENVELOPE_COUNTERS_OFFSET, 16);
    *envelope = (struct envelope){
        .header = header,
        .version = layout.version,
        .header_bytes = layout.header_bytes,
        .payload_bytes = layout.payload_bytes,
        .chunk_bytes = layout.chunk_bytes,
        .full_chunks = layout.full_chunks,
        .tail_bytes = layout.tail_bytes,
        .chunk_count = envelope_chunks(&layout),
    };
    envelope->updates = rd_u64(&rd);
    envelope->invocations = rd_u64(&rd);
    memcpy(envelope->identity, header + ENVELOPE_IDENTITY_OFFSET, sizeof envelope->identity);
    envelope->stray = find_stray(header,
        ENVELOPE_DIGESTS_OFFSET + ENVELOPE_DIGEST_BYTES * envelope->chunk_count, envelope->header_bytes);
}

/* The rest of a header whose start was checked; the start is not read twice, it could change meanwhile. */
static int read_rest(struct source *source, const uint8_t *start, struct arena *arena,
    struct envelope **ret_envelope, struct ckpt_err *err) {
    uint64_t size = layout_fields(start).header_bytes;
    struct envelope *envelope = arena_alloc(arena, 1, sizeof *envelope);
    uint8_t *header = arena_alloc(arena, size, 1);
    if (!envelope || !header)
        return err_set(err, CKPT_E_NOMEM, "no memory for a header of %" PRIu64 " bytes", size);
    memcpy(header, start, ENVELOPE_DIGESTS_OFFSET);
    int rc = source_read(source, ENVELOPE_DIGESTS_OFFSET, header + ENVELOPE_DIGESTS_OFFSET,
        size - ENVELOPE_DIGESTS_OFFSET, err);
    if (rc)
        return rc;
    fill(envelope, header);
    *ret_envelope = envelope;
    return 0;
}

int envelope_header_read(
    struct source *source, struct arena *arena, struct envelope **ret_envelope, struct ckpt_err *err) {
    uint8_t start[ENVELOPE_DIGESTS_OFFSET];
    if (source->size < ENVELOPE_PAGE_BYTES)
        return err_verdict(err, CKPT_E_MISMATCH, "truncated", "%" PRIu64 " bytes, a header has at least %d",
            source->size, ENVELOPE_PAGE_BYTES);
    int rc = source_read(source, 0, start, sizeof start, err);
    if (!rc)
        rc = check_start(start, source->size, err);
    return rc ? rc : read_rest(source, start, arena, ret_envelope, err);
}
