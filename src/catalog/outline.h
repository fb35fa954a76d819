/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How tensors stand in a safetensors file that is made of them: their order (largest elements first, then by
 * name), where the data of each is, without holes, and the header, which is padded with spaces so that the
 * data starts at a multiple of 8. Q4 and Q8 stand there as the float32 values that they mean.
 */
#ifndef CATALOG_OUTLINE_H
#define CATALOG_OUTLINE_H

#include "base/rows.h"
#include "catalog/catalog.h"

/* Immutable once made: any number of threads may read. */
struct outline {
    struct rows header; /* the length field and the metadata, a row for each tensor, the end */
    const struct tensor *items;
    const char *metadata; /* the text of __metadata__, NULL for none */
    size_t metadata_len;
    uint32_t *order; /* tensors in the order of their data, numbers in items */
    uint64_t *data;  /* where each one's data starts after the header, and where the last one's ends */
    uint64_t count;
};

/* Why a safetensors file cannot hold the tensor; NULL when it can. */
const char *outline_refuses(const struct tensor *tensor);
/* The type and the bytes that the tensor has there; false when these are 2^64 or more. */
enum dtype outline_dtype(const struct tensor *tensor);
bool outline_bytes(const struct tensor *tensor, uint64_t *ret_bytes);
/* Which of two comes first: negative, positive; 0 when type size and name are the same. */
int outline_compare(const struct tensor *a, const struct tensor *b);

/*
 * Of those of the count tensors that are not refused. Their names are taken to be UTF-8, and no two the same.
 * items, metadata (a JSON object of strings) and *outline stay where they are until outline_free.
 * Errors: NOMEM, LIMIT (the data passes 2^62 bytes).
 */
int outline_make(struct outline *outline, const struct tensor *items, uint64_t count, const char *metadata,
    size_t metadata_len, struct ckpt_err *err);
void outline_free(struct outline *outline); /* a zeroed one is allowed */

/* The length field included: where the data starts. */
uint64_t outline_header_bytes(const struct outline *outline);
/* Of the whole file. */
uint64_t outline_size(const struct outline *outline);

#endif
