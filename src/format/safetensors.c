/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors.h"

#include "base/ovf.h"
#include "base/rd.h"
#include "format/format.h"
#include "format/object.h"
#include "format/safetensors_layout.h"

#include <inttypes.h>
#include <stdlib.h>

bool safetensors_starts(const uint8_t *head, size_t head_len) {
    struct rd rd = rd_over(head, head_len);
    uint64_t length = rd_u64(&rd);
    uint8_t first = rd_u8(&rd);
    return !rd.short_ && length <= SAFETENSORS_HEADER_MAX && first == '{';
}

static bool probe(const uint8_t *head, size_t head_len, uint64_t size) {
    struct rd rd = rd_over(head, head_len);
    return safetensors_starts(head, head_len) && size >= 10 && rd_u64(&rd) <= size - SAFETENSORS_LENGTH_BYTES;
}

static int read_length(struct source *source, uint64_t *ret_length, struct ckpt_err *err) {
    uint8_t bytes[SAFETENSORS_LENGTH_BYTES];
    if (source->size < sizeof bytes)
        return err_set(err, CKPT_E_CORRUPT,
            "the file has %" PRIu64 " bytes, a safetensors file starts with a length of %zu", source->size,
            sizeof bytes);
    int rc = source_read(source, 0, bytes, sizeof bytes, err);
    if (rc)
        return rc;
    struct rd rd = rd_over(bytes, sizeof bytes);
    uint64_t length = rd_u64(&rd), left = source->size - sizeof bytes;
    if (length > SAFETENSORS_HEADER_MAX)
        return err_set(err, CKPT_E_CORRUPT, "the header length %" PRIu64 " is over the format's %" PRIu64,
            length, SAFETENSORS_HEADER_MAX);
    if (length > left)
        return err_set(err, CKPT_E_CORRUPT,
            "the header of %" PRIu64 " bytes passes the end of the file, which has %" PRIu64
            ": truncated, at least %" PRIu64 " bytes are missing",
            length, source->size, length - left);
    *ret_length = length;
    return 0;
}

int safetensors_read(
    struct source *source, struct arena *arena, struct safetensors *ret_file, struct ckpt_err *err) {
    uint64_t length = 0;
    int rc = read_length(source, &length, err);
    if (rc)
        return rc;
    char *header;
    rc = object_load(source, SAFETENSORS_LENGTH_BYTES, (size_t)length, &header, err);
    if (rc)
        return rc;
    rc = safetensors_header(header, (size_t)length, source->size, arena, ret_file, err);
    free(header);
    return rc;
}

static int parse(struct source **source, uint64_t base, const struct unit_judge *judge,
    struct catalog *catalog, struct ckpt_err *err) {
    (void)judge; /* no units here */
    struct safetensors file;
    int rc = safetensors_read(*source, &catalog->arena, &file, err);
    if (rc)
        return rc;
    struct part *part = arena_alloc(&catalog->arena, 1, sizeof *part);
    struct document *document = arena_alloc(&catalog->arena, 1, sizeof *document);
    if (!part || !document)
        return err_set(err, CKPT_E_NOMEM, "no memory for the catalog");
    struct range header = {base, file.header_bytes};
    *part = (struct part){.base = base, .size = (*source)->size};
    *document = (struct document){
        .path = "metadata.json", .json = file.metadata, .json_len = file.metadata_len, .from = header};
    catalog->format = format_safetensors.name;
    catalog->source_bytes = (*source)->size;
    catalog->parts = part;
    catalog->part_count = 1;
    catalog->groups[GROUP_TENSORS] =
        (struct group){.present = true, .items = file.items, .count = file.count, .index = header};
    catalog->documents = document;
    catalog->document_count = 1;
    catalog->head = header;
    return 0;
}

const struct format format_safetensors = {
    .name = "safetensors", .probe = probe, .suffix = ".safetensors", .parse = parse};
