/* SPDX-License-Identifier: Apache-2.0 */
/* The envelope's reader: its header, and the payload as whatever it is. */
#include "base/ovf.h"
#include "base/rd.h"
#include "format/envelope_header.h"
#include "format/format.h"
#include "format/oam_layout.h"
#include "format/safetensors_layout.h"

#include <stdio.h>
#include <string.h>

#define HEAD_BYTES 4096 /* what a format is told by */

static bool probe(const uint8_t *head, size_t head_len, uint64_t size) {
    (void)size;
    return head_len >= ENVELOPE_MAGIC_BYTES && !memcmp(head, ENVELOPE_MAGIC, ENVELOPE_MAGIC_BYTES);
}

/* ---- whose fault ------------------------------------------------------------------------------------ */

/* The judge of what is inside: it knows sections, the digests that lazy reading relies on are the chunks'. */
struct inner_judge {
    const struct unit_judge *outer;
    struct unit_table chunks;
};

/* The answer about the first chunk of those under `at` that does not hold. */
static int blame_chunks(const struct inner_judge *inner, struct range at, struct ckpt_err *err) {
    const struct unit_table *chunks = &inner->chunks;
    if (!at.len || !chunks->count)
        return 0;
    uint64_t first = (at.off - chunks->base) / chunks->chunk;
    uint64_t last = (at.off - chunks->base + at.len - 1) / chunks->chunk;
    for (uint64_t i = first; i <= last; i++) {
        const struct unit unit = unit_get(chunks, i);
        int rc = inner->outer->unit(inner->outer->arg, &unit, UNIT_BLAME, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int inner_unit(void *arg, const struct unit *unit, enum unit_when when, struct ckpt_err *err) {
    const struct inner_judge *inner = arg;
    if (when == UNIT_BLAME)
        return blame_chunks(inner, unit->at, err);
    return inner->outer->unit(inner->outer->arg, unit, when, err);
}

static int inner_table(void *arg, const struct unit_table *table, struct ckpt_err *err) {
    const struct inner_judge *inner = arg;
    return inner->outer->table(inner->outer->arg, table, err);
}

/* ---- the payload ------------------------------------------------------------------------------------ */

struct payload {
    struct source *source;       /* a slice of the envelope's */
    const struct format *format; /* NULL: raw bytes */
    uint8_t head[HEAD_BYTES];
    size_t head_len;
};

/* An envelope inside is not looked into: what may be opened stays one level deep. */
static const struct format *const inside[] = {&format_oam, &format_safetensors};

static int recognize(struct payload *payload, struct ckpt_err *err) {
    payload->head_len = (size_t)ovf_min(payload->source->size, HEAD_BYTES);
    int rc = source_read(payload->source, 0, payload->head, payload->head_len, err);
    for (size_t i = 0; !rc && !payload->format && i < sizeof inside / sizeof *inside; i++)
        if (inside[i]->probe(payload->head, payload->head_len, payload->source->size))
            payload->format = inside[i];
    return rc;
}

/* What had to be whole for the payload to be read at all. */
static struct range foundation(const struct payload *payload, const struct catalog *catalog, uint64_t base) {
    uint64_t len = OAM_HEADER_BYTES + OAM_SECTIONS_MAX * OAM_SECTION_BYTES;
    if (catalog->head.len)
        return catalog->head;
    if (payload->format == &format_safetensors) {
        struct rd rd = rd_over(payload->head, payload->head_len);
        len = rd_u64(&rd) + SAFETENSORS_LENGTH_BYTES; /* probed: it fits */
    }
    return (struct range){base, ovf_min(len, payload->source->size)};
}

/* What is known of the envelope alone; the arena keeps what was put into it since. */
static void drop_payload(struct catalog *catalog, const struct catalog *kept) {
    struct arena arena = catalog->arena;
    *catalog = *kept;
    catalog->arena = arena;
}

/* `fault` says why the payload cannot be parsed. Damage shows it as raw bytes; else it was written so. */
static int judge_fault(const struct payload *payload, const struct inner_judge *inner,
    const struct catalog *kept, struct catalog *catalog, const struct ckpt_err *fault, struct ckpt_err *err) {
    struct ckpt_err answer = {0};
    struct range needed = foundation(payload, catalog, inner->chunks.base);
    int rc = fault->code == CKPT_E_CORRUPT ? blame_chunks(inner, needed, &answer) : 0;
    if (rc == CKPT_E_CORRUPT || rc == CKPT_E_MISMATCH) {
        char lost[sizeof fault->msg + sizeof answer.words + 64];
        int len = snprintf(lost, sizeof lost, "the %s inside is shown as raw bytes: %s: %s",
            payload->format->name, answer.words, fault->msg);
        drop_payload(catalog, kept);
        catalog->lost = arena_text(&catalog->arena, lost, (size_t)len);
        catalog->lost_at = needed;
        return catalog->lost ? 0 : err_set(err, CKPT_E_NOMEM, "no memory for the catalog");
    }
    if (err)
        *err = rc ? answer : *fault;
    return err_wrap(err, rc ? rc : fault->code, "payload");
}

static int parse_payload(
    struct payload *payload, struct inner_judge *inner, struct catalog *catalog, struct ckpt_err *err) {
    const struct unit_judge judge = {.unit = inner_unit, .table = inner_table, .arg = inner};
    const struct catalog kept = *catalog;
    struct ckpt_err fault = {0};
    int rc = recognize(payload, err);
    if (rc || !payload->format)
        return rc;
    rc = payload->format->parse(&payload->source, inner->chunks.base, &judge, catalog, &fault);
    return rc ? judge_fault(payload, inner, &kept, catalog, &fault, err) : 0;
}

/* The chunks are what lazy reading relies on, whatever units the payload has of its own. */
static void adopt_payload(
    const struct source *source, const struct unit_table *chunks, struct catalog *catalog) {
    catalog->inner = catalog->units;
    catalog->units = *chunks;
    catalog->source_bytes = source->size;
    if (!catalog->format)
        catalog->format = "raw";
}

static int open_payload(
    struct source *source, struct inner_judge *inner, struct catalog *catalog, struct ckpt_err *err) {
    struct payload payload = {0};
    uint64_t at = catalog->envelope->header_bytes;
    int rc = source_slice(source, at, source->size - at, &payload.source, err);
    if (rc)
        return rc;
    rc = parse_payload(&payload, inner, catalog, err);
    source_close(payload.source);
    if (!rc)
        adopt_payload(source, &inner->chunks, catalog);
    return rc;
}

static int parse(struct source **source, uint64_t base, const struct unit_judge *judge,
    struct catalog *catalog, struct ckpt_err *err) {
    int rc = envelope_header_read(*source, &catalog->arena, &catalog->envelope, err);
    if (rc)
        return rc;
    const struct envelope *envelope = catalog->envelope;
    struct inner_judge inner = {
        .outer = judge,
        .chunks = {.count = envelope->chunk_count,
            .base = base + envelope->header_bytes,
            .total = envelope->payload_bytes,
            .chunk = envelope->chunk_bytes,
            .digests = (const uint8_t(*)[32])(envelope->header + ENVELOPE_DIGESTS_OFFSET)},
    };
    rc = judge->table(judge->arg, &inner.chunks, err);
    return rc ? rc : open_payload(*source, &inner, catalog, err);
}

const struct format format_envelope = {.name = "envelope", .probe = probe, .suffix = NULL, .parse = parse};
