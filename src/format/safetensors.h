/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one safetensors file, alone or as a shard. Layers: safetensors.c gets the header's bytes,
 * safetensors_header.c makes tensors of them, safetensors_places.c checks where their bytes are. */
#ifndef FORMAT_SAFETENSORS_H
#define FORMAT_SAFETENSORS_H

#include "catalog/catalog.h"
#include "source/source.h"

struct safetensors {
    struct tensor *items; /* in header order, part 0 */
    uint64_t count;
    const char *metadata; /* the text of __metadata__, "{}" without one; metadata_len bytes and a NUL */
    size_t metadata_len;
    bool has_metadata;
    uint64_t header_bytes; /* the length field included: where the data starts */
};

/* Reads and checks a whole file's header; what it returns lives in arena. Errors: CORRUPT, LIMIT (a rank over
 * SAFETENSORS_RANK_MAX), IO, CHANGED, NOMEM. */
int safetensors_read(
    struct source *source, struct arena *arena, struct safetensors *ret_file, struct ckpt_err *err);

/* The header (len bytes, at most SAFETENSORS_HEADER_MAX) of a file of file_size bytes. Errors: CORRUPT,
 * LIMIT, NOMEM. */
int safetensors_header(const char *header, size_t len, uint64_t file_size, struct arena *arena,
    struct safetensors *ret_file, struct ckpt_err *err);

/* Drops members that say again what another one said; *count is how many stay. Errors: CORRUPT (two different
 * entries of one name), NOMEM. */
int safetensors_repeats(struct tensor *tensors, uint64_t *count, struct ckpt_err *err);

/* Whether the tensors fill the data_size bytes from data_start on, each byte once. Errors: CORRUPT, NOMEM. */
int safetensors_places(const struct tensor *tensors, uint64_t count, uint64_t data_start, uint64_t data_size,
    struct ckpt_err *err);

/* Whether the first bytes are a length and the start of a header, even one that the file is too short for. */
bool safetensors_starts(const uint8_t *head, size_t head_len);

#endif
