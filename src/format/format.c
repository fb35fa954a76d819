/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format.h"

#include "base/ovf.h"
#include "base/rd.h"
#include "base/text.h"
#include "format/envelope_layout.h"
#include "format/mistake.h"
#include "format/safetensors.h"

#include <string.h>

#define HEAD_BYTES 4096

const struct format *const format_table[] = {
    &format_oam, &format_envelope, &format_safetensors, &format_index, NULL};

static bool ends_with(const char *text, const char *suffix) {
    size_t len = strlen(text), tail = strlen(suffix);
    return len >= tail && !strcmp(text + len - tail, suffix);
}

static const struct format *find_by_content(const uint8_t *head, size_t head_len, uint64_t size) {
    for (const struct format *const *row = format_table; *row; row++)
        if ((*row)->probe(head, head_len, size))
            return *row;
    return NULL;
}

static const struct format *find_by_name(const char *name) {
    for (const struct format *const *row = format_table; *row; row++)
        if ((*row)->suffix && ends_with(name, (*row)->suffix))
            return *row;
    return NULL;
}

/* An envelope's magic before a version that never was: chance, when the name says something else. */
static bool doubtful(const struct format *format, const uint8_t *head, size_t head_len) {
    struct rd rd = rd_over(head, head_len);
    rd_skip(&rd, ENVELOPE_MAGIC_BYTES);
    return format == &format_envelope && rd_u64(&rd) != ENVELOPE_VERSION && !rd.short_;
}

const struct format *format_find(const uint8_t *head, size_t head_len, uint64_t size, const char *suffix_of) {
    const struct format *content = find_by_content(head, head_len, size);
    const struct format *name =
        suffix_of && (!content || doubtful(content, head, head_len)) ? find_by_name(suffix_of) : NULL;
    return name ? name : content;
}

static int unknown(const uint8_t *head, size_t head_len, struct ckpt_err *err) {
    char hex[2 * 8 + 1];
    if (!head_len)
        return err_set(err, CKPT_E_FORMAT, "not a checkpoint: the file is empty");
    text_hex(head, ovf_min(head_len, 8), hex);
    return err_set(err, CKPT_E_FORMAT, "not a checkpoint: no known format starts with the bytes %s", hex);
}

/* By content, even where the file is cut short; then the mistakes, which go by a checkpoint's name as a
 * rule; then by name. */
static int recognize(
    struct source *source, const struct format **ret_format, bool *ret_sure, struct ckpt_err *err) {
    uint8_t head[HEAD_BYTES];
    size_t len = (size_t)ovf_min(sizeof head, source->size);
    int rc = source_read(source, 0, head, len, err);
    if (rc)
        return rc;
    const struct format *format = format_find(head, len, source->size, NULL);
    if (!format && safetensors_starts(head, len))
        format = &format_safetensors;
    if (!format && (rc = mistake_check(head, len, err)))
        return rc;
    if (!format || doubtful(format, head, len))
        format = format_find(head, len, source->size, source->name);
    if (!format)
        return unknown(head, len, err);
    *ret_sure = format->probe(head, len, source->size);
    *ret_format = format;
    return 0;
}

int format_parse(
    struct source **source, const struct unit_judge *judge, struct catalog *catalog, struct ckpt_err *err) {
    const struct format *format;
    bool sure; /* by content, not by name */
    int rc = recognize(*source, &format, &sure, err);
    if (rc)
        return rc;
    if (sure && format != &format_envelope) /* what that holds is not known yet */
        catalog->format = format->name;
    return format->parse(source, 0, judge, catalog, err);
}
