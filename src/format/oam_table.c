/* SPDX-License-Identifier: Apache-2.0 */
#include "format/oam.h"

#include "base/ovf.h"
#include "base/rd.h"

#include <inttypes.h>

#define TABLE_MAX (OAM_SECTIONS_MAX * OAM_SECTION_BYTES)

const struct oam_kind_info oam_kind_table[OAM_KIND_END] = {
    [OAM_CONFIG] = {"config", "config section", "sections/config.bin"},
    [OAM_WEIGHTS] = {"weights", "weights section", "sections/weights.bin"},
    [OAM_STATE] = {"state", "state section", "sections/state.bin"},
    [OAM_OPTIMIZER] = {"optimizer", "optimizer section", "sections/optimizer.bin"},
    [OAM_PROGRESS] = {"progress", "progress section", "sections/progress.bin"},
    [OAM_KERNEL_CACHE] = {"legacy_kernel_cache", "legacy_kernel_cache section",
        "sections/legacy_kernel_cache.bin"},
};

uint64_t oam_fnv(uint64_t h, const void *bytes, size_t len) {
    for (const uint8_t *at = bytes, *end = at + len; at < end; at++)
        h = (h ^ *at) * UINT64_C(0x100000001b3);
    return h;
}

/* ---- the file header -------------------------------------------------------------------------------- */

static struct oam_header header_fields(const uint8_t *bytes) {
    struct rd rd = rd_over(bytes, OAM_HEADER_BYTES);
    struct oam_header header;
    header.magic = rd_u32(&rd);
    header.version = rd_u32(&rd);
    header.section_count = rd_u32(&rd);
    header.flags = rd_u32(&rd);
    header.file_bytes = rd_u64(&rd);
    header.checksum = rd_u64(&rd);
    return header;
}

static int check_header(const struct oam_header *header, uint64_t size, struct ckpt_err *err) {
    if (header->magic != OAM_MAGIC)
        return err_verdict(err, CKPT_E_CORRUPT, "invalid magic",
            "0x%08" PRIx32 " where 0x%08" PRIx32 " stands", header->magic, OAM_MAGIC);
    if (header->version < OAM_VERSION_MIN || header->version > OAM_VERSION_MAX)
        return err_verdict(err, CKPT_E_CORRUPT, "unsupported format version",
            "version %" PRIu32 ", known are %d to %d", header->version, OAM_VERSION_MIN, OAM_VERSION_MAX);
    if (header->section_count < 1 || header->section_count > OAM_SECTIONS_MAX)
        return err_verdict(err, CKPT_E_CORRUPT, "invalid section count",
            "%" PRIu32 " sections, 1 to %d are allowed", header->section_count, OAM_SECTIONS_MAX);
    if (header->file_bytes != size)
        return err_verdict(err, CKPT_E_CORRUPT, "file size does not match header",
            "%" PRIu64 " bytes, the header says %" PRIu64, size, header->file_bytes);
    uint64_t head = OAM_HEADER_BYTES + OAM_SECTION_BYTES * (uint64_t)header->section_count;
    if (head > size)
        return err_verdict(err, CKPT_E_CORRUPT, "truncated section table",
            "%" PRIu32 " sections take %" PRIu64 " bytes, the file has %" PRIu64, header->section_count, head,
            size);
    return 0;
}

/* The header with its own checksum as zeros, then the table. */
static int check_metadata(
    const struct oam_header *header, const uint8_t *head, size_t len, struct ckpt_err *err) {
    static const uint8_t zeros[sizeof header->checksum];
    const size_t after = OAM_HEADER_CHECKSUM_OFFSET + sizeof zeros;
    uint64_t found = oam_fnv(OAM_FNV_START, head, OAM_HEADER_CHECKSUM_OFFSET);
    found = oam_fnv(found, zeros, sizeof zeros);
    found = oam_fnv(found, head + after, len - after);
    if (header->version == OAM_VERSION_LEGACY || found == header->checksum)
        return 0;
    return err_verdict(err, CKPT_E_CORRUPT, "file metadata checksum mismatch",
        "fnv1a64:%016" PRIx64 ", the header says %016" PRIx64, found, header->checksum);
}

/* ---- the sections ----------------------------------------------------------------------------------- */

static struct oam_section section_fields(struct rd *rd) {
    struct oam_section section;
    section.kind = rd_u32(rd);
    section.compression = rd_u8(rd);
    rd_skip(rd, 3);
    section.flags = rd_u32(rd);
    section.offset = rd_u64(rd);
    section.size = rd_u64(rd);
    section.compressed_size = rd_u64(rd);
    section.checksum = rd_u64(rd);
    rd_skip(rd, 20);
    return section;
}

static uint64_t first_page(uint32_t section_count) {
    uint64_t head = OAM_HEADER_BYTES + OAM_SECTION_BYTES * (uint64_t)section_count;
    return (head + OAM_PAGE_BYTES - 1) / OAM_PAGE_BYTES * OAM_PAGE_BYTES;
}

static int check_kind(const struct oam *oam, uint32_t index, struct ckpt_err *err) {
    const struct oam_section *section = &oam->sections[index];
    if (section->kind < OAM_CONFIG || section->kind >= OAM_KIND_END)
        return err_verdict(err, CKPT_E_CORRUPT, "unknown section type",
            "section %" PRIu32 " has type %" PRIu32, index, section->kind);
    for (uint32_t i = 0; i < index; i++)
        if (oam->sections[i].kind == section->kind)
            return err_verdict(err, CKPT_E_CORRUPT, "duplicate section type",
                "sections %" PRIu32 " and %" PRIu32 " are both %s", i, index,
                oam_kind_table[section->kind].name);
    if (section->compression || section->compressed_size)
        return err_verdict(err, CKPT_E_CORRUPT, "unsupported section compression",
            "section %" PRIu32 " has compression %u, compressed size %" PRIu64, index,
            (unsigned)section->compression, section->compressed_size);
    return 0;
}

static int check_place(const struct oam *oam, uint32_t index, struct ckpt_err *err) {
    const struct oam_section *section = &oam->sections[index];
    uint64_t end, first = first_page(oam->header.section_count), size = oam->source->size;
    if (!ovf_add(section->offset, section->size, &end))
        return err_verdict(err, CKPT_E_CORRUPT, "section range overflow",
            "section %" PRIu32 ": offset %" PRIu64 " + size %" PRIu64 " passes 2^64", index, section->offset,
            section->size);
    if (section->offset < first || end > size)
        return err_verdict(err, CKPT_E_CORRUPT, "section range is outside the file",
            "section %" PRIu32 ": offset %" PRIu64 " + size %" PRIu64 " is not inside %" PRIu64
            " to %" PRIu64,
            index, section->offset, section->size, first, size);
    return 0;
}

static struct unit unit_of(const struct oam *oam, uint32_t index) {
    const struct oam_section *section = &oam->sections[index];
    struct unit unit = {
        .at = {oam->base + section->offset, section->size},
        .kind = DIGEST_FNV1A64,
        .label = oam_kind_table[section->kind].unit,
        .index = index,
    };
    for (int i = 0; i < 8; i++)
        unit.digest[i] = (uint8_t)(section->checksum >> (56 - 8 * i));
    return unit;
}

/* One section after another, payloads too: the first fault in table order is the file's. */
static int check_sections(struct oam *oam, struct section *rows, struct unit *units, struct ckpt_err *err) {
    for (uint32_t i = 0; i < oam->header.section_count; i++) {
        const struct oam_section *section = &oam->sections[i];
        int rc = check_kind(oam, i, err);
        if (!rc)
            rc = check_place(oam, i, err);
        if (rc)
            return rc;
        units[i] = unit_of(oam, i);
        rc = oam->judge->unit(oam->judge->arg, &units[i], UNIT_IN_ORDER, err);
        if (rc)
            return rc;
        rows[i] = (struct section){.kind = oam_kind_table[section->kind].name,
            .offset = section->offset,
            .size = section->size,
            .checksum = section->checksum,
            .flags = section->flags};
    }
    return 0;
}

/* ---- all sections together -------------------------------------------------------------------------- */

/* Table indexes by offset; sections of one offset stay in table order, which decides about empty ones. */
static void sort_by_offset(const struct oam *oam, uint32_t *order) {
    for (uint32_t i = 0; i < oam->header.section_count; i++) {
        uint32_t at = i;
        for (; at && oam->sections[order[at - 1]].offset > oam->sections[i].offset; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static int check_overlaps(const struct oam *oam, struct ckpt_err *err) {
    uint32_t order[OAM_SECTIONS_MAX];
    sort_by_offset(oam, order);
    for (uint32_t i = 1; i < oam->header.section_count; i++) {
        const struct oam_section *before = &oam->sections[order[i - 1]], *after = &oam->sections[order[i]];
        if (after->offset < before->offset + before->size)
            return err_verdict(err, CKPT_E_CORRUPT, "overlapping section ranges",
                "section %" PRIu32 " ends at %" PRIu64 ", section %" PRIu32 " starts at %" PRIu64,
                order[i - 1], before->offset + before->size, order[i], after->offset);
    }
    return 0;
}

static int check_legacy(const struct oam *oam, struct ckpt_err *err) {
    uint64_t found = 0;
    for (uint32_t i = 0; i < oam->header.section_count; i++)
        found ^= oam->sections[i].checksum;
    if (oam->header.version != OAM_VERSION_LEGACY || found == oam->header.checksum)
        return 0;
    return err_verdict(err, CKPT_E_CORRUPT, "legacy file checksum mismatch",
        "%016" PRIx64 ", the header says %016" PRIx64, found, oam->header.checksum);
}

static int check_required(const struct oam *oam, struct ckpt_err *err) {
    static const enum oam_kind required[] = {OAM_CONFIG, OAM_PROGRESS};
    for (size_t k = 0; k < sizeof required / sizeof *required; k++) {
        uint32_t i = 0;
        while (i < oam->header.section_count && oam->sections[i].kind != required[k])
            i++;
        if (i == oam->header.section_count)
            return err_verdict(err, CKPT_E_CORRUPT, "required section is missing",
                "no %s among %" PRIu32 " sections", oam_kind_table[required[k]].name,
                oam->header.section_count);
    }
    return 0;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static int read_header(struct oam *oam, uint8_t *bytes, struct ckpt_err *err) {
    uint64_t size = oam->source->size;
    if (size < OAM_HEADER_BYTES)
        return err_verdict(err, CKPT_E_CORRUPT, "truncated file header", "%" PRIu64 " bytes, a header has %d",
            size, OAM_HEADER_BYTES);
    int rc = source_read(oam->source, 0, bytes, OAM_HEADER_BYTES, err);
    if (rc)
        return rc;
    oam->header = header_fields(bytes);
    return check_header(&oam->header, size, err);
}

static int read_head(struct oam *oam, struct ckpt_err *err) {
    uint8_t head[OAM_HEADER_BYTES + TABLE_MAX];
    int rc = read_header(oam, head, err);
    if (rc)
        return rc;
    size_t table = OAM_SECTION_BYTES * (size_t)oam->header.section_count;
    oam->catalog->head = (struct range){oam->base, OAM_HEADER_BYTES + table};
    rc = source_read(oam->source, OAM_HEADER_BYTES, head + OAM_HEADER_BYTES, table, err);
    if (!rc)
        rc = check_metadata(&oam->header, head, OAM_HEADER_BYTES + table, err);
    if (rc)
        return rc;
    struct rd rd = rd_over(head + OAM_HEADER_BYTES, table);
    for (uint32_t i = 0; i < oam->header.section_count; i++)
        oam->sections[i] = section_fields(&rd);
    return 0;
}

int oam_table(struct oam *oam, struct ckpt_err *err) {
    struct catalog *catalog = oam->catalog;
    int rc = read_head(oam, err);
    if (rc)
        return rc;
    uint32_t count = oam->header.section_count;
    struct section *rows = arena_alloc(&catalog->arena, count, sizeof *rows);
    struct unit *units = arena_alloc(&catalog->arena, count, sizeof *units);
    if (!rows || !units)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu32 " sections", count);
    rc = check_sections(oam, rows, units, err);
    if (!rc)
        rc = check_overlaps(oam, err);
    if (!rc)
        rc = check_legacy(oam, err);
    if (!rc)
        rc = check_required(oam, err);
    if (rc)
        return rc;
    catalog->sections = rows;
    catalog->section_count = count;
    catalog->units = (struct unit_table){.list = units, .count = count};
    return 0;
}
