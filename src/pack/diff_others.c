/* SPDX-License-Identifier: Apache-2.0 */
/* What is no tensor: documents (diff_documents.c), and files of bytes. */
#include "base/ovf.h"
#include "pack/diff.h"
#include "pack/out.h"

#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)1 << 18)

int diff_add(struct diff *diff, const struct ckpt_difference *difference, struct ckpt_err *err) {
    if (diff->other_count == diff->other_cap) {
        size_t cap = diff->other_cap ? 2 * diff->other_cap : 16;
        struct ckpt_difference *others = reallocarray(diff->others, cap, sizeof *others);
        if (!others)
            return err_set(err, CKPT_E_NOMEM, "no memory for %zu differences", cap);
        diff->others = others;
        diff->other_cap = cap;
    }
    diff->others[diff->other_count++] = *difference;
    return 0;
}

int diff_add_whole(struct diff *diff, const char *place, enum ckpt_difference_kind kind, uint64_t a_bytes,
    uint64_t b_bytes, struct ckpt_err *err) {
    const struct ckpt_difference difference = {
        .kind = kind, .place = place, .name = "", .a.bytes = a_bytes, .b.bytes = b_bytes};
    return diff_add(diff, &difference, err);
}

int diff_read(const struct diff_side *side, uint64_t off, void *buf, size_t len, struct ckpt_err *err) {
    int rc = source_read(side->source, off, buf, len, err);
    return rc ? err_wrap(err, rc, "%s", side->source->name) : 0;
}

/* ---- files of bytes ------------------------------------------------------------------------------------ */

#define ARCH_CONFIG "raw/arch_config.bin"
#define PAYLOAD "envelope/payload.bin"

static bool find_blob(const struct catalog *catalog, const char *path, struct range *ret_at) {
    for (uint32_t i = 0; i < catalog->blob_count; i++)
        if (!strcmp(catalog->blobs[i].path, path)) {
            *ret_at = catalog->blobs[i].at;
            return true;
        }
    return false;
}

/* An envelope's payload that is no checkpoint: all that is known of it is its bytes. */
static bool find_payload(const struct catalog *catalog, struct range *ret_at) {
    if (!catalog->envelope || strcmp(catalog->format, "raw") != 0)
        return false;
    *ret_at = (struct range){catalog->envelope->header_bytes, catalog->envelope->payload_bytes};
    return true;
}

/* buf holds two pieces. */
static int compare_ranges(const struct diff_side sides[2], const struct range at[2], uint8_t *buf,
    const struct ckpt_write_options *options, bool *ret_same, struct ckpt_err *err) {
    bool same = true;
    int rc = 0;
    for (uint64_t done = 0, len; !rc && same && done < at[0].len; done += len) {
        len = ovf_min(PIECE, at[0].len - done);
        rc = out_stop(options, err);
        if (!rc)
            rc = diff_read(&sides[0], at[0].off + done, buf, (size_t)len, err);
        if (!rc)
            rc = diff_read(&sides[1], at[1].off + done, buf + PIECE, (size_t)len, err);
        same = !rc && memcmp(buf, buf + PIECE, (size_t)len) == 0;
        out_tell(options, done + len, at[0].len);
    }
    *ret_same = same;
    return rc;
}

static int diff_file(struct diff *diff, const struct diff_side sides[2], const char *place, const bool has[2],
    const struct range at[2], const struct ckpt_write_options *options, struct ckpt_err *err) {
    bool same = at[0].len == at[1].len;
    if (!has[0] && !has[1])
        return 0;
    if (!has[0] || !has[1])
        return diff_add_whole(diff, place, has[0] ? CKPT_REMOVED : CKPT_ADDED, at[0].len, at[1].len, err);
    uint8_t *buf = malloc(2 * PIECE);
    int rc = buf ? 0 : err_set(err, CKPT_E_NOMEM, "no memory to compare %s", place);
    if (!rc && same)
        rc = compare_ranges(sides, at, buf, options, &same, err);
    free(buf);
    return rc || same ? rc : diff_add_whole(diff, place, CKPT_CHANGED, at[0].len, at[1].len, err);
}

int diff_others(struct diff *diff, const struct diff_side sides[2], const struct ckpt_write_options *options,
    struct ckpt_err *err) {
    struct range at[2] = {{0}};
    bool has[2];
    int rc = diff_documents(diff, sides, err);
    for (int i = 0; i < 2; i++)
        has[i] = find_blob(sides[i].catalog, ARCH_CONFIG, &at[i]);
    if (!rc)
        rc = diff_file(diff, sides, ARCH_CONFIG, has, at, options, err);
    for (int i = 0; i < 2; i++) {
        at[i] = (struct range){0};
        has[i] = find_payload(sides[i].catalog, &at[i]);
    }
    return rc ? rc : diff_file(diff, sides, PAYLOAD, has, at, options, err);
}
