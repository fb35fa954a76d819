/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quote.h"
#include "pack/convert_own.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- what cannot be held ------------------------------------------------------------------------------- */

void convert_refuse(struct convert *convert, const char *fmt, ...) {
    char line[1024];
    va_list args;
    convert->refused++;
    if (!convert->how->cannot_hold)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    convert->how->cannot_hold(convert->how->arg, line);
}

int convert_judge(const struct convert *convert, const char *target, struct ckpt_err *err) {
    if (!convert->refused || convert->how->drop)
        return 0;
    return err_set(err, CKPT_E_UNSUPPORTED, "%" PRIu64 " thing%s of it cannot be held by %s",
        convert->refused, convert->refused == 1 ? "" : "s", target);
}

bool convert_is_oam(const struct catalog *catalog) {
    return !strcmp(catalog->format, "oam");
}

void convert_refuse_sections(struct convert *convert) {
    for (uint32_t i = 0; i < convert->catalog->section_count; i++) {
        const struct section *section = &convert->catalog->sections[i];
        if (!strcmp(section->kind, "legacy_kernel_cache"))
            convert_refuse(
                convert, "the kernel cache (%" PRIu64 " bytes): it is not written any more", section->size);
    }
}

const struct document *convert_document(const struct catalog *catalog, const char *path) {
    for (uint32_t i = 0; i < catalog->document_count; i++)
        if (!strcmp(catalog->documents[i].path, path))
            return &catalog->documents[i];
    return NULL;
}

/* ---- the metadata of safetensors ------------------------------------------------------------------------
 */

static int tell_differ(void *arg, const struct ckpt_pair *pair, struct ckpt_err *err) {
    struct quoted key;
    (void)err;
    convert_refuse(arg, "metadata %s: the files of the set do not agree on its value",
        quote(&key, pair->key, pair->key_len));
    return 0;
}

/* What the numbers that an index has are about is seen in the tensors themselves. */
static void drop_totals(struct metadata *others) {
    size_t kept = 0;
    for (size_t i = 0; i < others->count; i++)
        if (strcmp(others->pairs[i].key, "total_size") != 0 &&
            strcmp(others->pairs[i].key, "total_parameters") != 0)
            others->pairs[kept++] = others->pairs[i];
    others->count = kept;
}

int convert_gather(
    struct convert *convert, struct metadata *metadata, struct metadata *others, struct ckpt_err *err) {
    const struct catalog *catalog = convert->catalog;
    const struct document *document = convert_document(catalog, "metadata.json");
    int rc = 0;
    for (uint32_t i = 0; !rc && i < catalog->part_count; i++)
        if (catalog->parts[i].metadata)
            rc = metadata_read(
                metadata, catalog->parts[i].metadata, catalog->parts[i].metadata_len, NULL, err);
    if (!rc && document)
        rc = metadata_read(metadata, document->json, document->json_len, others, err);
    drop_totals(others);
    return rc ? rc : metadata_settle(metadata, tell_differ, convert, err);
}
