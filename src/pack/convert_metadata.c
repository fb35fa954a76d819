/* SPDX-License-Identifier: Apache-2.0 */
/* An .oam's config and progress as the metadata of a safetensors file. */
#include "base/json.h"
#include "base/ovf.h"
#include "base/rd.h"
#include "base/text.h"
#include "catalog/outline.h"
#include "format/oam_layout.h"
#include "pack/convert_own.h"
#include "pack/nans.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define PIECE_BYTES 4096

static int add(struct metadata *metadata, const char *key, struct buf *value, struct ckpt_err *err) {
    int rc = value->failed ? err_set(err, CKPT_E_NOMEM, "no memory for metadata")
                           : metadata_add(metadata, key, strlen(key), value->bytes, value->len, err);
    buf_free(value);
    return rc;
}

/* ---- config -------------------------------------------------------------------------------------------- */

static int put_hex(struct source *source, struct range at, struct buf *text, struct ckpt_err *err) {
    uint8_t bytes[PIECE_BYTES];
    char digits[2 * PIECE_BYTES + 1];
    int rc = 0;
    for (uint64_t done = 0; !rc && done < at.len; done += PIECE_BYTES) {
        size_t len = (size_t)ovf_min(sizeof bytes, at.len - done);
        rc = source_read(source, at.off + done, bytes, len, err);
        if (rc)
            return rc;
        text_hex(bytes, len, digits);
        buf_put(text, digits, 2 * len);
    }
    return rc;
}

static int add_arch_config(const struct convert *convert, struct metadata *metadata, struct ckpt_err *err) {
    const struct catalog *catalog = convert->catalog;
    struct buf text = {0};
    for (uint32_t i = 0; i < catalog->blob_count; i++) {
        if (strcmp(catalog->blobs[i].path, "raw/arch_config.bin") != 0)
            continue;
        int rc = put_hex(convert->source, catalog->blobs[i].at, &text, err);
        if (!rc)
            return add(metadata, KEY_ARCH_CONFIG, &text, err);
        buf_free(&text);
        return err_wrap(err, rc, "raw/arch_config.bin");
    }
    return 0;
}

static int add_config(const struct convert *convert, struct metadata *metadata, struct ckpt_err *err) {
    const struct document *config = convert_document(convert->catalog, "config.json");
    if (!config || !config->json) /* it was vouched for: the reader made it */
        return err_set(err, CKPT_E_CORRUPT, "config.json could not be parsed");
    int rc = metadata_add(metadata, KEY_CONFIG, strlen(KEY_CONFIG), config->json, config->json_len, err);
    return rc ? rc : add_arch_config(convert, metadata, err);
}

/* ---- progress ------------------------------------------------------------------------------------------ */

static bool is_nan(uint32_t bits) {
    return (bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000);
}

/* JSON knows one NaN: which one it was follows as bits. */
static void put_progress(const struct document *progress, uint32_t rate, uint32_t metric, struct buf *text) {
    size_t len = progress->json_len;
    while (len && progress->json[len - 1] != '}')
        len--;
    if (!len || (!is_nan(rate) && !is_nan(metric))) {
        buf_put(text, progress->json, progress->json_len);
        return;
    }
    buf_put(text, progress->json, len - 1);
    buf_printf(text, ", \"learning_rate_bits\": \"%08" PRIx32 "\", \"best_metric_bits\": \"%08" PRIx32 "\"}",
        rate, metric);
}

static int add_progress(const struct convert *convert, struct metadata *metadata, struct ckpt_err *err) {
    const struct document *progress = convert_document(convert->catalog, "progress.json");
    uint8_t section[OAM_PROGRESS_BYTES];
    struct buf text = {0};
    if (!progress || !progress->json || progress->from.len != sizeof section)
        return err_set(err, CKPT_E_CORRUPT, "progress.json could not be parsed");
    int rc = source_read(convert->source, progress->from.off, section, sizeof section, err);
    if (rc)
        return err_wrap(err, rc, "progress.json");
    struct rd rd = rd_over(section, sizeof section);
    rd_skip(&rd, NANS_PROGRESS_OFFSET);
    uint32_t rate = rd_u32(&rd), metric = rd_u32(&rd);
    put_progress(progress, rate, metric, &text);
    return add(metadata, KEY_PROGRESS, &text, err);
}

/* ---- order --------------------------------------------------------------------------------------------- */

static bool in_order(const struct tensor *items, uint64_t count) {
    for (uint64_t i = 1; i < count; i++)
        if (outline_compare(&items[i - 1], &items[i]) > 0)
            return false;
    return true;
}

static int add_order(
    const struct tensor *items, uint64_t count, struct metadata *metadata, struct ckpt_err *err) {
    struct buf text = {0};
    if (in_order(items, count))
        return 0;
    for (uint64_t i = 0; i < count; i++) {
        buf_putc(&text, i ? ',' : '[');
        json_put_string(&text, items[i].name, items[i].name_len);
    }
    buf_putc(&text, ']');
    return add(metadata, KEY_ORDER, &text, err);
}

int convert_describe(struct convert *convert, const struct tensor *items, uint64_t count,
    struct metadata *metadata, struct ckpt_err *err) {
    int rc = metadata_add(metadata, KEY_FORMAT, strlen(KEY_FORMAT), "pt", 2, err);
    if (!rc)
        rc = add_config(convert, metadata, err);
    if (!rc)
        rc = add_progress(convert, metadata, err);
    return rc ? rc : add_order(items, count, metadata, err);
}
