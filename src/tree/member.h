/* SPDX-License-Identifier: Apache-2.0 */
/* Members of small JSON documents; false when there is no memory. */
#ifndef TREE_MEMBER_H
#define TREE_MEMBER_H

#include "base/text.h"

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exact, where cJSON's own numbers are doubles. */
static inline bool member_u64(cJSON *object, const char *name, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return cJSON_AddRawToObject(object, name, text) != NULL;
}

static inline bool member_text(cJSON *object, const char *name, const char *value) {
    return (value ? cJSON_AddStringToObject(object, name, value) : cJSON_AddNullToObject(object, name)) !=
           NULL;
}

/* "PREFIX" and at most 32 bytes in hexadecimal. */
static inline bool member_hex(
    cJSON *object, const char *name, const char *prefix, const uint8_t *bytes, size_t len) {
    char text[16 + 64 + 1];
    int at = snprintf(text, 16, "%s", prefix);
    text_hex(bytes, len, text + at);
    return member_text(object, name, text);
}

/* An empty object at the end of the array; NULL when there is no memory. */
static inline cJSON *member_row(cJSON *array) {
    cJSON *row = cJSON_CreateObject();
    if (row && cJSON_AddItemToArray(array, row))
        return row;
    cJSON_Delete(row);
    return NULL;
}

/* The document's text with a newline at its end, or NULL when there is no memory; takes root over. */
static inline char *member_print(cJSON *root) {
    char *text = root ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    size_t len = text ? strlen(text) : 0;
    char *grown = text ? realloc(text, len + 2) : NULL;
    if (!grown) {
        free(text);
        return NULL;
    }
    memcpy(grown + len, "\n", 2);
    return grown;
}

#endif
