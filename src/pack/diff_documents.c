/* SPDX-License-Identifier: Apache-2.0 */
/* Documents by their members. */
#include "pack/diff.h"
#include "pack/members.h"
#include "pack/nans.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
    return diff_add(diff, &difference, err);
}

/* A document of both. */
struct pair {
    const struct diff_side *sides;
    const struct document *a, *b;
};

static int read_bits(const struct diff_side *side, const struct document *document, uint64_t off,
    uint32_t *ret_bits, struct ckpt_err *err) {
    uint8_t bytes[4];
    if (off + sizeof bytes > document->from.len)
        return err_set(
            err, CKPT_E_CORRUPT, "%s: a section of %" PRIu64 " bytes", document->path, document->from.len);
    int rc = diff_read(side, document->from.off + off, bytes, sizeof bytes, err);
    if (!rc)
        *ret_bits = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    return rc;
}

/* "NaN (7fc00000)", quotes included. */
static int show_bits(struct diff *diff, uint32_t bits, struct member *member, struct ckpt_err *err) {
    char text[24];
    int len = snprintf(text, sizeof text, "\"NaN (%08" PRIx32 ")\"", bits);
    member->json = arena_text(&diff->names, text, (size_t)len);
    member->json_len = (size_t)len;
    return member->json ? 0 : err_set(err, CKPT_E_NOMEM, "no memory for a difference");
}

/* Two members of the same text: where that is "NaN", their bits may differ all the same. */
static int compare_nans(struct diff *diff, const struct pair *pair, const struct member *a,
    const struct member *b, struct ckpt_err *err) {
    struct member left = *a, right = *b;
    uint32_t bits[2];
    uint64_t off;
    if (!a->text || strcmp(a->text, "NaN") != 0 || !nans_place(pair->a->path, a->key, a->key_len, &off))
        return 0;
    int rc = read_bits(&pair->sides[0], pair->a, off, &bits[0], err);
    if (!rc)
        rc = read_bits(&pair->sides[1], pair->b, off, &bits[1], err);
    if (rc || bits[0] == bits[1])
        return rc;
    rc = show_bits(diff, bits[0], &left, err);
    if (!rc)
        rc = show_bits(diff, bits[1], &right, err);
    return rc ? rc : add_member(diff, pair->a->path, &left, &right, err);
}

static int compare_members(struct diff *diff, const struct pair *pair, const struct members *a,
    const struct members *b, struct ckpt_err *err) {
    int rc = 0;
    for (size_t i = 0, j = 0; !rc && (i < a->count || j < b->count);) {
        int order = i == a->count ? 1 : j == b->count ? -1 : members_order(&a->items[i], &b->items[j]);
        const struct member *left = order <= 0 ? &a->items[i] : NULL;
        const struct member *right = order >= 0 ? &b->items[j] : NULL;
        if (!left || !right || !members_same(left, right))
            rc = add_member(diff, pair->a->path, left, right, err);
        else
            rc = compare_nans(diff, pair, left, right, err);
        i += left != NULL;
        j += right != NULL;
    }
    return rc;
}

static bool same_text(const struct document *a, const struct document *b) {
    return a->json_len == b->json_len && !memcmp(a->json, b->json, a->json_len) &&
           !memmem(a->json, a->json_len, "\"NaN\"", 5);
}

static int compare_documents(struct diff *diff, const struct pair *pair, struct ckpt_err *err) {
    const struct document *a = pair->a, *b = pair->b;
    struct members left = {0}, right = {0};
    if (same_text(a, b))
        return 0;
    int rc = members_read(a->json, a->json_len, &diff->names, &left, err);
    if (!rc)
        rc = members_read(b->json, b->json_len, &diff->names, &right, err);
    if (!rc && left.is_object && right.is_object)
        rc = compare_members(diff, pair, &left, &right, err);
    else if (!rc && (a->json_len != b->json_len || memcmp(a->json, b->json, a->json_len) != 0))
        rc = diff_add_whole(diff, a->path, CKPT_CHANGED, a->json_len, b->json_len, err);
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

int diff_documents(struct diff *diff, const struct diff_side sides[2], struct ckpt_err *err) {
    const struct catalog *a = sides[0].catalog, *b = sides[1].catalog;
    int rc = 0;
    for (uint32_t i = 0; !rc && i < a->document_count; i++) {
        const struct document *left = &a->documents[i];
        const struct pair pair = {sides, left, find_document(b, left->path)};
        rc = pair.b ? compare_documents(diff, &pair, err)
                    : diff_add_whole(diff, left->path, CKPT_REMOVED, left->json_len, 0, err);
    }
    for (uint32_t i = 0; !rc && i < b->document_count; i++)
        if (!find_document(a, b->documents[i].path))
            rc = diff_add_whole(diff, b->documents[i].path, CKPT_ADDED, 0, b->documents[i].json_len, err);
    return rc;
}
