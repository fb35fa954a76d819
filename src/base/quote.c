/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quote.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Longer pieces than one character or one extent never come; the rest of the text is for "...'" and a NUL. */
#define LIMIT (sizeof((struct quoted *)0)->text - 32)

static bool is_control(const char *at, size_t left) {
    uint8_t byte = (uint8_t)at[0];
    /* C1 controls too: terminals obey them. */
    return byte < 0x20 || byte == 0x7f || (byte == 0xc2 && left > 1 && (uint8_t)at[1] < 0xa0);
}

/* Bytes of the UTF-8 sequence that starts here, as far as it is there. */
static size_t sequence(const char *at, size_t left) {
    size_t len = 1;
    while (len < left && len < 4 && ((uint8_t)at[len] & 0xc0) == 0x80)
        len++;
    return len;
}

const char *quote(struct quoted *quoted, const char *name, size_t len) {
    char *out = quoted->text;
    size_t used = 0, at = 0;
    out[used++] = '\'';
    while (at < len && used < LIMIT) {
        size_t width = sequence(name + at, len - at);
        if (is_control(name + at, len - at))
            for (size_t i = 0; i < width; i++)
                used += (size_t)snprintf(out + used, 5, "\\x%02x", (unsigned)(uint8_t)name[at + i]);
        else {
            if (name[at] == '\'' || name[at] == '\\')
                out[used++] = '\\';
            memcpy(out + used, name + at, width);
            used += width;
        }
        at += width;
    }
    snprintf(out + used, sizeof quoted->text - used, "%s'", at < len ? "..." : "");
    return out;
}

const char *quote_shape(struct quoted *quoted, const uint64_t *shape, size_t rank) {
    char *out = quoted->text;
    size_t used = 0, at = 0;
    out[used++] = '[';
    for (; at < rank && used < LIMIT; at++)
        used +=
            (size_t)snprintf(out + used, sizeof quoted->text - used, "%s%" PRIu64, at ? ", " : "", shape[at]);
    snprintf(out + used, sizeof quoted->text - used, "%s]", at < rank ? ", ..." : "");
    return out;
}
