/* SPDX-License-Identifier: Apache-2.0 */
#include "repair.h"

#include "base/json.h"
#include "base/ovf.h"
#include "format/envelope_header.h"
#include "format/oam_layout.h"
#include "format/safetensors_layout.h"
#include "hash/fnv1a.h"
#include "hash/hash.h"

#include <string.h>

static uint64_t get(const uint8_t *at, int width) {
    uint64_t value = 0;
    for (int i = 0; i < width; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static void put(uint8_t *at, int width, uint64_t value) {
    for (int i = 0; i < width; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

enum repair_kind repair_kind(const uint8_t *bytes, size_t len) {
    if (len >= OAM_HEADER_BYTES && get(bytes, 4) == OAM_MAGIC)
        return REPAIR_OAM;
    if (len >= ENVELOPE_PAGE_BYTES && !memcmp(bytes, ENVELOPE_MAGIC, ENVELOPE_MAGIC_BYTES))
        return REPAIR_ENVELOPE;
    return len > SAFETENSORS_LENGTH_BYTES && bytes[8] == '{' ? REPAIR_SAFETENSORS : REPAIR_OTHER;
}

/* ---- .oam -------------------------------------------------------------------------------------------- */

/* Sections whose headers are in the file. */
static size_t oam_sections(const uint8_t *bytes, size_t len) {
    uint64_t count = get(bytes + 8, 4);
    return (size_t)ovf_min(ovf_min(count, OAM_SECTIONS_MAX), (len - OAM_HEADER_BYTES) / OAM_SECTION_BYTES);
}

static uint8_t *oam_section(uint8_t *bytes, size_t index) {
    return bytes + OAM_HEADER_BYTES + OAM_SECTION_BYTES * index;
}

static void repair_oam(uint8_t *bytes, size_t len) {
    size_t count = oam_sections(bytes, len);
    uint64_t legacy = 0;
    put(bytes + 8, 4, count);
    put(bytes + 16, 8, len);
    for (size_t i = 0; i < count; i++) {
        uint8_t *section = oam_section(bytes, i);
        uint64_t off = get(section + 12, 8), size = get(section + 20, 8);
        if (ovf_inside(off, size, len) && off >= OAM_PAGE_BYTES)
            put(section + 36, 8, fnv1a64(FNV1A64_START, bytes + off, (size_t)size));
        legacy ^= get(section + 36, 8);
    }
    uint8_t *checksum = bytes + OAM_HEADER_CHECKSUM_OFFSET;
    put(checksum, 8, 0);
    uint64_t head = fnv1a64(FNV1A64_START, bytes, OAM_HEADER_BYTES + OAM_SECTION_BYTES * count);
    put(checksum, 8, get(bytes + 4, 4) == OAM_VERSION_LEGACY ? legacy : head);
}

/* The header and table, or the first bytes of a section. */
static void oam_window(const uint8_t *bytes, size_t len, unsigned choice, size_t *ret_off, size_t *ret_len) {
    size_t count = oam_sections(bytes, len), index = choice % (count + 1);
    *ret_off = 0;
    *ret_len = OAM_HEADER_BYTES + OAM_SECTION_BYTES * count;
    if (index == count)
        return;
    const uint8_t *section = bytes + OAM_HEADER_BYTES + OAM_SECTION_BYTES * index;
    uint64_t off = get(section + 12, 8), size = get(section + 20, 8);
    if (!size || !ovf_inside(off, size, len))
        return;
    *ret_off = (size_t)off;
    *ret_len = (size_t)ovf_min(size, choice & 64 ? 256 : 1024);
}

/* ---- envelopes --------------------------------------------------------------------------------------- */

/* The fewest pages of header that fit the chunks of what follows them. */
static bool envelope_fit(size_t len, uint64_t chunk_bytes, struct envelope_layout *ret_layout) {
    for (size_t header = ENVELOPE_PAGE_BYTES; header <= len; header += ENVELOPE_PAGE_BYTES)
        if (envelope_layout_of(len - header, chunk_bytes, ret_layout) && ret_layout->header_bytes == header)
            return true;
    return false;
}

static void repair_envelope(uint8_t *bytes, size_t len) {
    struct envelope_layout layout;
    uint64_t chunk_bytes = get(bytes + 32, 8);
    if (!envelope_fit(len, chunk_bytes ? chunk_bytes : 1024, &layout))
        return;
    uint8_t *payload = bytes + layout.header_bytes, *digest = bytes + ENVELOPE_DIGESTS_OFFSET;
    envelope_layout_put(&layout, bytes);
    if (repair_kind(payload, (size_t)layout.payload_bytes) == REPAIR_OAM)
        repair_oam(payload, (size_t)layout.payload_bytes);
    for (uint64_t at = 0; at < layout.payload_bytes; at += layout.chunk_bytes) {
        uint64_t size = ovf_min(layout.chunk_bytes, layout.payload_bytes - at);
        (void)hash_bytes(HASH_SHA256, payload + at, (size_t)size, digest, NULL);
        digest += ENVELOPE_DIGEST_BYTES;
        if (size < layout.chunk_bytes)
            break; /* the next offset may pass 2^64 */
    }
    memset(digest, 0, (size_t)(payload - digest));
}

static void envelope_window(
    const uint8_t *bytes, size_t len, unsigned choice, size_t *ret_off, size_t *ret_len) {
    size_t header = (size_t)ovf_min(get(bytes + 16, 8), len);
    *ret_off = 0;
    *ret_len = ENVELOPE_DIGESTS_OFFSET;
    if (choice % 4 == 0 || header == len)
        return;
    *ret_len = len - header;
    if (repair_kind(bytes + header, len - header) == REPAIR_OAM)
        oam_window(bytes + header, len - header, choice / 4, ret_off, ret_len);
    *ret_off += header;
}

/* ---- safetensors ------------------------------------------------------------------------------------- */

/* The second number of the array that was just begun, into *ret_end if it is larger. */
static void take_end(struct json *json, uint64_t *ret_end) {
    uint64_t end;
    if (json_next(json) == JSON_NUMBER && json_next(json) == JSON_NUMBER && json_u64(json, &end))
        *ret_end = ovf_max(*ret_end, end);
}

/* Where the header's object ends, and where its tensors' data end. 0: no object. */
static size_t header_end(const char *text, size_t len, uint64_t *ret_data) {
    struct json json;
    enum json_event event;
    json_start(&json, text, len);
    event = json_next(&json);
    while (event != JSON_ERROR && json.depth) {
        bool offsets = event == JSON_KEY && json_is(&json, SAFETENSORS_OFFSETS);
        event = json_next(&json);
        if (offsets && event == JSON_ARRAY)
            take_end(&json, ret_data);
    }
    size_t end = event == JSON_OBJECT_END ? json_offset(&json) : 0;
    json_stop(&json);
    return end;
}

static size_t repair_safetensors(uint8_t *bytes, size_t len, size_t max) {
    uint64_t data = 0, whole;
    size_t header = header_end((const char *)bytes + 8, len - 8, &data);
    while (header && header + 8 < len && header % SAFETENSORS_HEADER_ALIGN && bytes[8 + header] == ' ')
        header++;
    if (!header || !ovf_add(data, 8 + header, &whole) || whole > max)
        return len;
    put(bytes, 8, header);
    if (whole > len)
        memset(bytes + len, 0x5a, (size_t)whole - len);
    return (size_t)whole;
}

/* ---- any --------------------------------------------------------------------------------------------- */

size_t repair(uint8_t *bytes, size_t len, size_t max) {
    switch (repair_kind(bytes, len)) {
    case REPAIR_OAM:
        repair_oam(bytes, len);
        return len;
    case REPAIR_ENVELOPE:
        repair_envelope(bytes, len);
        return len;
    case REPAIR_SAFETENSORS:
        return repair_safetensors(bytes, len, max);
    default:
        return len;
    }
}

void repair_window(const uint8_t *bytes, size_t len, unsigned choice, size_t *ret_off, size_t *ret_len) {
    *ret_off = 0;
    *ret_len = len;
    if (repair_kind(bytes, len) == REPAIR_OAM)
        oam_window(bytes, len, choice, ret_off, ret_len);
    else if (repair_kind(bytes, len) == REPAIR_ENVELOPE)
        envelope_window(bytes, len, choice, ret_off, ret_len);
}
