/* SPDX-License-Identifier: Apache-2.0 */
/* What is no tensor: documents, and files of bytes. */
#include "base/ovf.h"
#include "pack/diff.h"
#include "pack/members.h"
#include "pack/out.h"

#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)1 << 18)

static int add(struct diff *diff, const struct ckpt_difference *difference, struct ckpt_err *err) {
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

static int add_whole(struct diff *diff, const char *place, enum ckpt_difference_kind kind, uint64_t a_bytes,
    uint64_t b_bytes, struct ckpt_err *err) {
    const struct ckpt_difference difference = {
        .kind = kind, .place = place, .name = "", .a.bytes = a_bytes, .b.bytes = b_bytes};
    return add(diff, &difference, err);
}

/* ---- documents ----------------------------------------------------------------------------------------- */

/* One of them may be NULL. */
static int add_member(struct diff *diff, const char *place, const struct member *a, const struct member *b,
    struct ckpt_err *err) {
    const struct member *named = a ? a : b;
    struct ckpt_difference difference = {.kind = !a   ? CKPT_ADDED
                                                 : !b ? CKPT_REMOVED
                                                      : CKPT_CHANGED,
        .place = place,
        .name = named->key,
        .name_len = named->key_len};
    if (a)
        difference.a = (struct ckpt_difference_side){.json = a->json, .json_len = a->json_len};
    if (b)
        difference.b = (struct ckpt_difference_side){.json = b->json, .json_len = b->json_len};
    return add(diff, &difference, err);
}

static int compare_members(struct diff *diff, const char *place, const struct members *a,
    const struct members *b, struct ckpt_err *err) {
    int rc = 0;
    for (size_t i = 0, j = 0; !rc && (i < a->count || j < b->count);) {
        int order = i == a->count ? 1 : j == b->count ? -1 : members_order(&a->items[i], &b->items[j]);
        const struct member *left = order <= 0 ? &a->items[i] : NULL;
        const struct member *right = order >= 0 ? &b->items[j] : NULL;
        if (!left || !right || !members_same(left, right))
            rc = add_member(diff, place, left, right, err);
        i += left != NULL;
        j += right != NULL;
    }
    return rc;
}

static int compare_documents(
    struct diff *diff, const struct document *a, const struct document *b, struct ckpt_err *err) {
    struct members left = {0}, right = {0};
    if (a->json_len == b->json_len && !memcmp(a->json, b->json, a->json_len))
        return 0;
    int rc = members_read(a->json, a->json_len, &diff->names, &left, err);
    if (!rc)
        rc = members_read(b->json, b->json_len, &diff->names, &right, err);
    if (!rc && left.is_object && right.is_object)
        rc = compare_members(diff, a->path, &left, &right, err);
    else if (!rc)
        rc = add_whole(diff, a->path, CKPT_CHANGED, a->json_len, b->json_len, err);
    members_free(&left);
    members_free(&right);
    return rc;
}

static const struct document *find_document(const struct catalog *catalog, const char *path) {
    for (uint32_t i = 0; i < catalog->document_count; i++)
        if (!strcmp(catalog->documents[i].path, path))
            return &catalog->documents[i];
    return NULL;
}

static int diff_documents(
    struct diff *diff, const struct catalog *a, const struct catalog *b, struct ckpt_err *err) {
    int rc = 0;
    for (uint32_t i = 0; !rc && i < a->document_count; i++) {
        const struct document *left = &a->documents[i], *right = find_document(b, left->path);
        rc = right ? compare_documents(diff, left, right, err)
                   : add_whole(diff, left->path, CKPT_REMOVED, left->json_len, 0, err);
    }
    for (uint32_t i = 0; !rc && i < b->document_count; i++)
        if (!find_document(a, b->documents[i].path))
            rc = add_whole(diff, b->documents[i].path, CKPT_ADDED, 0, b->documents[i].json_len, err);
    return rc;
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

static int read_side(
    const struct diff_side *side, uint64_t off, void *buf, size_t len, struct ckpt_err *err) {
    int rc = source_read(side->source, off, buf, len, err);
    return rc ? err_wrap(err, rc, "%s", side->source->name) : 0;
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
            rc = read_side(&sides[0], at[0].off + done, buf, (size_t)len, err);
        if (!rc)
            rc = read_side(&sides[1], at[1].off + done, buf + PIECE, (size_t)len, err);
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
        return add_whole(diff, place, has[0] ? CKPT_REMOVED : CKPT_ADDED, at[0].len, at[1].len, err);
    uint8_t *buf = malloc(2 * PIECE);
    int rc = buf ? 0 : err_set(err, CKPT_E_NOMEM, "no memory to compare %s", place);
    if (!rc && same)
        rc = compare_ranges(sides, at, buf, options, &same, err);
    free(buf);
    return rc || same ? rc : add_whole(diff, place, CKPT_CHANGED, at[0].len, at[1].len, err);
}

int diff_others(struct diff *diff, const struct diff_side sides[2], const struct ckpt_write_options *options,
    struct ckpt_err *err) {
    struct range at[2] = {{0}};
    bool has[2];
    int rc = diff_documents(diff, sides[0].catalog, sides[1].catalog, err);
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
