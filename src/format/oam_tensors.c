/* SPDX-License-Identifier: Apache-2.0 */
/* Weights and state sections: all index entries are read first, then every tensor's place is checked. */
#include "format/oam.h"

#include "base/ovf.h"
#include "base/quote.h"
#include "base/rd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_ENTRIES 1024 /* index entries in one read */

struct index {
    struct oam *oam;
    const struct oam_section *section;
    struct tensor *items;
    uint64_t count;
    uint64_t blob;  /* where the blob starts in the section */
    uint64_t named; /* items whose name was read */
};

/* ---- entries ---------------------------------------------------------------------------------------- */

static struct oam_entry entry_fields(const uint8_t *bytes) {
    struct rd rd = rd_over(bytes + OAM_NAME_BYTES, OAM_ENTRY_BYTES - OAM_NAME_BYTES);
    struct oam_entry entry;
    entry.offset = rd_u64(&rd);
    entry.size = rd_u64(&rd);
    entry.dtype = rd_u8(&rd);
    entry.rank = rd_u8(&rd);
    entry.encoding = rd_u8(&rd);
    entry.block = rd_u8(&rd);
    rd_skip(&rd, OAM_ENTRY_RESERVED_BYTES);
    for (int i = 0; i < OAM_RANK_MAX; i++)
        entry.shape[i] = rd_u64(&rd);
    return entry;
}

static int check_name(const uint8_t *bytes, struct ckpt_err *err) {
    int rc = oam_text(bytes, OAM_NAME_BYTES, "tensor name", err);
    if (!rc && !bytes[0])
        return err_verdict(err, CKPT_E_CORRUPT, "invalid or duplicate tensor name", "the name is empty");
    return rc;
}

static int check_fields(const struct oam_entry *entry, const uint8_t *bytes, struct ckpt_err *err) {
    static const uint8_t zeros[OAM_ENTRY_RESERVED_BYTES];
    if (entry->dtype >= DTYPE_OAM_COUNT)
        return err_verdict(err, CKPT_E_CORRUPT, "invalid scalar type", "%u, known are 0 to %d",
            (unsigned)entry->dtype, DTYPE_OAM_COUNT - 1);
    if (entry->rank > OAM_RANK_MAX)
        return err_verdict(err, CKPT_E_CORRUPT, "invalid tensor rank", "%u, at most %d",
            (unsigned)entry->rank, OAM_RANK_MAX);
    if (entry->encoding >= ENCODING_COUNT)
        return err_verdict(err, CKPT_E_CORRUPT, "unknown tensor encoding", "%u, known are 0 to %d",
            (unsigned)entry->encoding, ENCODING_COUNT - 1);
    const uint8_t *reserved = bytes + OAM_NAME_BYTES + 20;
    if (memcmp(reserved, zeros, sizeof zeros))
        return err_verdict(err, CKPT_E_CORRUPT, "tensor reserved bytes are nonzero", "%02x %02x %02x %02x",
            reserved[0], reserved[1], reserved[2], reserved[3]);
    return 0;
}

/* tensor->offset stays relative to the blob until its place was checked. */
static int keep_entry(struct index *index, const struct oam_entry *entry, struct ckpt_err *err) {
    struct tensor *tensor = &index->items[index->named - 1];
    uint64_t *shape = arena_alloc(&index->oam->catalog->arena, entry->rank, sizeof *shape);
    if (!shape)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " tensors", index->count);
    memcpy(shape, entry->shape, entry->rank * sizeof *shape);
    tensor->shape = shape;
    tensor->rank = entry->rank;
    tensor->offset = entry->offset;
    tensor->size = entry->size;
    tensor->dtype = entry->dtype;
    tensor->encoding = entry->encoding;
    tensor->block = entry->block;
    return 0;
}

static int read_entry(struct index *index, const uint8_t *bytes, struct ckpt_err *err) {
    struct tensor *tensor = &index->items[index->named];
    int rc = check_name(bytes, err);
    if (rc)
        return err_wrap(err, rc, "tensor %" PRIu64, index->named);
    tensor->name_len = (uint32_t)strnlen((const char *)bytes, OAM_NAME_BYTES);
    tensor->name = arena_text(&index->oam->catalog->arena, (const char *)bytes, tensor->name_len);
    if (!tensor->name)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " tensors", index->count);
    index->named++;
    struct oam_entry entry = entry_fields(bytes);
    rc = check_fields(&entry, bytes, err);
    if (!rc)
        return keep_entry(index, &entry, err);
    struct quoted name;
    return err_wrap(err, rc, "tensor %s", quote(&name, tensor->name, tensor->name_len));
}

static int read_pieces(struct index *index, uint8_t *piece, struct ckpt_err *err) {
    for (uint64_t at = 0, count; at < index->count; at += count) {
        count = ovf_min(index->count - at, PIECE_ENTRIES);
        uint64_t off = index->section->offset + OAM_INDEX_BYTES + at * OAM_ENTRY_BYTES;
        int rc = source_read(index->oam->source, off, piece, (size_t)count * OAM_ENTRY_BYTES, err);
        for (uint64_t i = 0; !rc && i < count; i++)
            rc = read_entry(index, piece + i * OAM_ENTRY_BYTES, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_entries(struct index *index, struct ckpt_err *err) {
    uint8_t *piece = malloc((size_t)PIECE_ENTRIES * OAM_ENTRY_BYTES);
    if (!piece)
        return err_set(err, CKPT_E_NOMEM, "no memory for a piece of the index");
    int rc = read_pieces(index, piece, err);
    free(piece);
    return rc;
}

/* ---- names ------------------------------------------------------------------------------------------ */

struct name {
    const struct tensor *tensor;
    uint64_t hash;
};

/* Hashes first, so that texts are hardly ever looked at; names made to collide cost a comparison of texts and
 * nothing worse. Equal names stay in index order. */
static int name_order(const void *a, const void *b) {
    const struct name *left = a, *right = b;
    if (left->hash != right->hash)
        return left->hash < right->hash ? -1 : 1;
    int texts = strcmp(left->tensor->name, right->tensor->name);
    return texts ? texts : (left->tensor > right->tensor) - (left->tensor < right->tensor);
}

/* The first tensor whose name an earlier one has; NULL when there is none. */
static const struct tensor *first_repeat(struct name *names, uint64_t count) {
    const struct tensor *first = NULL;
    qsort(names, count, sizeof *names, name_order);
    for (uint64_t i = 1; i < count; i++)
        if (names[i - 1].hash == names[i].hash && !strcmp(names[i - 1].tensor->name, names[i].tensor->name) &&
            (!first || names[i].tensor < first))
            first = names[i].tensor;
    return first;
}

static int check_repeats(const struct index *index, struct ckpt_err *err) {
    if (index->named < 2)
        return 0;
    struct name *names = reallocarray(NULL, index->named, sizeof *names);
    if (!names)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " names", index->named);
    for (uint64_t i = 0; i < index->named; i++) {
        const struct tensor *tensor = &index->items[i];
        names[i] = (struct name){tensor, oam_fnv(OAM_FNV_START, tensor->name, tensor->name_len)};
    }
    const struct tensor *repeat = first_repeat(names, index->named);
    free(names);
    if (!repeat)
        return 0;
    struct quoted name;
    return err_verdict(err, CKPT_E_CORRUPT, "invalid or duplicate tensor name",
        "tensor %td, %s, is listed before", repeat - index->items,
        quote(&name, repeat->name, repeat->name_len));
}

/* A repeated name is older than a fault that was found in the same entry or a later one. */
static int read_index(struct index *index, struct ckpt_err *err) {
    int rc = read_entries(index, err);
    if (rc && rc != CKPT_E_CORRUPT)
        return rc;
    int repeats = check_repeats(index, err);
    return repeats ? repeats : rc;
}

/* ---- places ----------------------------------------------------------------------------------------- */

static int fault_of(
    enum tensor_fault fault, const struct tensor *tensor, uint64_t bytes, struct ckpt_err *err) {
    static const char *const words[] = {
        [TENSOR_ELEMENTS] = "element count overflow",
        [TENSOR_DENSE_OVERFLOW] = "dense byte count overflow",
        [TENSOR_BLOCK] = "dense tensor has a nonzero block size",
        [TENSOR_QUANT_LAYOUT] = "invalid quantized tensor layout",
        [TENSOR_QUANT_OVERFLOW] = "quantized byte count overflow",
        [TENSOR_PARTIAL_BYTE] = "byte count does not match shape and encoding",
        [TENSOR_SIZE] = "byte count does not match shape and encoding",
    };
    struct quoted shape;
    quote_shape(&shape, tensor->shape, tensor->rank);
    if (fault == TENSOR_SIZE)
        return err_verdict(err, CKPT_E_CORRUPT, words[fault],
            "%s %s, %s, takes %" PRIu64 " bytes, not %" PRIu64, dtype_table[tensor->dtype].name, shape.text,
            encoding_names[tensor->encoding], bytes, tensor->size);
    return err_verdict(err, CKPT_E_CORRUPT, words[fault], "%s %s, %s, block size %u",
        dtype_table[tensor->dtype].name, shape.text, encoding_names[tensor->encoding],
        (unsigned)tensor->block);
}

static int check_shape(const struct index *index, struct tensor *tensor, struct ckpt_err *err) {
    uint64_t bytes = 0;
    enum tensor_fault fault = tensor_check(tensor, &bytes);
    bool may_quantize =
        index->oam->header.version >= OAM_VERSION_QUANTIZED && index->section->kind == OAM_WEIGHTS;
    if (tensor->encoding != ENCODING_DENSE && !may_quantize && fault != TENSOR_ELEMENTS)
        fault = TENSOR_QUANT_LAYOUT;
    return fault == TENSOR_OK ? 0 : fault_of(fault, tensor, bytes, err);
}

static int check_range(const struct index *index, const struct tensor *tensor, struct ckpt_err *err) {
    uint64_t end, room = index->section->size - index->blob;
    if (!ovf_add(tensor->offset, tensor->size, &end))
        return err_verdict(err, CKPT_E_CORRUPT, "tensor range overflow",
            "offset %" PRIu64 " + size %" PRIu64 " passes 2^64", tensor->offset, tensor->size);
    if (end > room)
        return err_verdict(err, CKPT_E_CORRUPT, "tensor payload range is outside its section",
            "offset %" PRIu64 " + size %" PRIu64 " past end %" PRIu64, tensor->offset, tensor->size, room);
    return 0;
}

static int check_tensors(struct index *index, struct ckpt_err *err) {
    for (uint64_t i = 0; i < index->count; i++) {
        struct tensor *tensor = &index->items[i];
        int rc = check_range(index, tensor, err);
        if (!rc)
            rc = check_shape(index, tensor, err);
        struct quoted name;
        if (rc)
            return err_wrap(err, rc, "tensor %s", quote(&name, tensor->name, tensor->name_len));
        tensor->offset += index->section->offset + index->blob;
    }
    return 0;
}

static int overlap(const struct index *index, uint64_t a, uint64_t b, struct ckpt_err *err) {
    const struct tensor *left = &index->items[a], *right = &index->items[b];
    struct quoted names[2];
    return err_verdict(err, CKPT_E_CORRUPT, "overlapping tensor payload ranges",
        "%s: offset %" PRIu64 ", size %" PRIu64 "; %s: offset %" PRIu64 ", size %" PRIu64,
        quote(&names[0], left->name, left->name_len), left->offset, left->size,
        quote(&names[1], right->name, right->name_len), right->offset, right->size);
}

static int check_overlaps(const struct index *index, struct ckpt_err *err) {
    uint64_t a, b;
    int rc = 0;
    struct range *ranges = reallocarray(NULL, index->count ? index->count : 1, sizeof *ranges);
    if (!ranges)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " ranges", index->count);
    for (uint64_t i = 0; i < index->count; i++)
        ranges[i] = (struct range){index->items[i].offset, index->items[i].size};
    bool found = ranges_overlap(ranges, index->count, &a, &b, &rc);
    free(ranges);
    if (found)
        return overlap(index, a, b, err);
    return rc ? err_set(err, rc, "no memory to compare %" PRIu64 " ranges", index->count) : 0;
}

/* ---- the section ------------------------------------------------------------------------------------ */

static int read_count(struct index *index, struct ckpt_err *err) {
    const struct oam_section *section = index->section;
    uint8_t bytes[OAM_INDEX_BYTES];
    if (section->size < sizeof bytes)
        return err_verdict(err, CKPT_E_CORRUPT, "truncated field",
            "%" PRIu64 " bytes, the index starts with %zu", section->size, sizeof bytes);
    int rc = source_read(index->oam->source, section->offset, bytes, sizeof bytes, err);
    if (rc)
        return rc;
    struct rd rd = rd_over(bytes, sizeof bytes);
    index->count = rd_u32(&rd);
    uint32_t reserved = rd_u32(&rd);
    if (reserved)
        return err_verdict(
            err, CKPT_E_CORRUPT, "tensor index reserved field is nonzero", "0x%08" PRIx32, reserved);
    index->blob = OAM_INDEX_BYTES + OAM_ENTRY_BYTES * index->count;
    if (index->blob > section->size)
        return err_verdict(err, CKPT_E_CORRUPT, "truncated tensor index",
            "%" PRIu64 " tensors take %" PRIu64 " bytes, the section has %" PRIu64, index->count, index->blob,
            section->size);
    return 0;
}

int oam_tensors(
    struct oam *oam, const struct oam_section *section, struct group *group, struct ckpt_err *err) {
    struct index index = {.oam = oam, .section = section};
    int rc = read_count(&index, err);
    if (rc)
        return rc;
    index.items = arena_alloc(&oam->catalog->arena, index.count, sizeof *index.items);
    if (!index.items)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " tensors", index.count);
    rc = read_index(&index, err);
    if (!rc)
        rc = check_tensors(&index, err);
    if (!rc)
        rc = check_overlaps(&index, err);
    if (rc)
        return rc;
    group->items = index.items;
    group->count = index.count;
    group->index = (struct range){oam->base + section->offset, index.blob};
    return 0;
}
