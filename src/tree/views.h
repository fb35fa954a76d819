/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: what is in each kind of file, as segments. Texts and headers that a view makes are its own;
 * everything else points into the catalog. Making a view reads nothing from the source.
 */
#ifndef TREE_VIEWS_H
#define TREE_VIEWS_H

#include "catalog/outline.h"
#include "tree/segment.h"

/* ---- tensors (view_npy.c) --------------------------------------------------------------------------- */

/* Whether plain NumPy can hold the values, and a header of format 1.0 the shape. */
bool npy_exists(const struct tensor *tensor);
/* Bytes of the whole .npy; false when they pass 2^63. Only for tensors that npy_exists. */
bool npy_size(const struct tensor *tensor, uint64_t *ret_bytes);
/* The header that numpy.save writes. */
void npy_header(const struct tensor *tensor, struct buf *buf);
/* The tensor's data as .npy holds it, `at` bytes into the file. */
struct segment npy_body(const struct catalog *catalog, const struct tensor *tensor, uint64_t at);

/* ---- JSON (view_json.c, view_verify.c): freed with free(), NULL when there is no memory ---------------- */

char *json_checkpoint(const struct catalog *catalog);
char *json_envelope(const struct envelope *envelope);
char *json_verify(const struct catalog *catalog, struct guard *guard);

/* ---- rows (view_rows.c) ----------------------------------------------------------------------------- */

/* tensors.json; catalog outlives it. Errors: NOMEM. */
int rows_tensors_json(const struct catalog *catalog, struct rows *ret_rows, struct ckpt_err *err);
/* envelope/SHA256SUMS. */
struct rows rows_sums(const struct catalog *catalog);

/* ---- export (view_safetensors.c) -------------------------------------------------------------------- */

/* A group as a safetensors file. Immutable once made. */
struct export {
    struct outline outline;
    const struct catalog *catalog;
};

/* Errors: NOMEM, LIMIT (it would pass 2^62 bytes). */
int export_new(
    const struct catalog *catalog, enum group_kind group, struct export **ret_export, struct ckpt_err *err);
void export_free(struct export *export); /* NULL is allowed */
/* The data segment that holds the byte at offset (past the header, before the end). */
struct segment export_segment(const struct export *export, uint64_t offset);

#endif
