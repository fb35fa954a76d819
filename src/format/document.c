/* SPDX-License-Identifier: Apache-2.0 */
#include "format/document.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void kept(cJSON **root, const cJSON *item) {
    if (item)
        return;
    cJSON_Delete(*root);
    *root = NULL;
}

void document_raw(cJSON **root, const char *key, const char *text) {
    kept(root, text ? cJSON_AddRawToObject(*root, key, text) : NULL);
}

void document_text(cJSON **root, const char *key, const char *text) {
    kept(root, cJSON_AddStringToObject(*root, key, text));
}

void document_bool(cJSON **root, const char *key, bool value) {
    kept(root, cJSON_AddBoolToObject(*root, key, value));
}

void document_u64(cJSON **root, const char *key, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    document_raw(root, key, text);
}

void document_i64(cJSON **root, const char *key, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    document_raw(root, key, text);
}

void document_f32(cJSON **root, const char *key, float value) {
    struct buf text = {0};
    json_put_f32(&text, value);
    document_raw(root, key, buf_cstr(&text));
    buf_free(&text);
}

int document_finish(struct arena *arena, cJSON *root, struct document *document, struct ckpt_err *err) {
    char *text = root ? cJSON_Print(root) : NULL;
    size_t len = text ? strlen(text) : 0;
    char *json = text ? arena_text(arena, text, len + 1) : NULL;
    cJSON_free(text);
    cJSON_Delete(root);
    if (!json)
        return err_set(err, CKPT_E_NOMEM, "no memory for %s", document->path);
    json[len] = '\n';
    document->json = json;
    document->json_len = len + 1;
    return 0;
}
