/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small JSON documents that readers make of binary fields. Numbers go in as text: cJSON's own are
 * doubles, and 64-bit integers have to be exact. The adders do nothing on a NULL root and free and clear it
 * when memory ends, so that a document is checked once, by document_finish.
 */
#ifndef FORMAT_DOCUMENT_H
#define FORMAT_DOCUMENT_H

#include "catalog/catalog.h"

#include <cjson/cJSON.h>

void document_raw(cJSON **root, const char *key, const char *json); /* NULL: no memory */
void document_text(cJSON **root, const char *key, const char *text);
void document_bool(cJSON **root, const char *key, bool value);
void document_u64(cJSON **root, const char *key, uint64_t value);
void document_i64(cJSON **root, const char *key, int64_t value);
void document_f32(cJSON **root, const char *key, float value);

/* The text into the arena and the document; takes root over. Errors: NOMEM. */
int document_finish(struct arena *arena, cJSON *root, struct document *document, struct ckpt_err *err);

#endif
