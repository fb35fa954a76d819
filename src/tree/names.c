/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/names.h"
#include "base/quote.h"

#include "hash/fnv1a.h"
#include "tree/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const group_folders[GROUP_COUNT] = {"tensors", "state", "optimizer"};

#define CUT_BYTES 200 /* kept of a stem that is too long, before "~" and the hash */
#define HASH_TEXT 17  /* "~" and 16 digits */

/* '/' ends a component, '%' starts an escape, control bytes garble terminals. */
static bool is_plain(unsigned char byte) {
    return byte >= 0x20 && byte != 0x7f && byte != '/' && byte != '%';
}

/* Escapes as much of the name as fits into max bytes; true when that is all of it. */
static bool escape(const char *name, size_t len, size_t max, char out[STEM_MAX], size_t *ret_len) {
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)name[i];
        bool plain = is_plain(byte) && !(byte == '.' && i == 0);
        if (used + (plain ? 1 : 3) > max) {
            *ret_len = used;
            return false;
        }
        if (plain) {
            out[used++] = (char)byte;
        } else {
            out[used++] = '%';
            out[used++] = digits[byte >> 4];
            out[used++] = digits[byte & 15];
        }
    }
    *ret_len = used;
    return true;
}

/* Where a stem of at least CUT_BYTES + 1 bytes is cut: neither inside a UTF-8 sequence nor inside an escape.
 */
static size_t cut_at(const char *stem) {
    size_t kept = CUT_BYTES;
    while (kept && ((unsigned char)stem[kept] & 0xc0) == 0x80)
        kept--;
    for (size_t back = 1; back <= 2 && back <= kept; back++)
        if (stem[kept - back] == '%')
            return kept - back;
    return kept;
}

size_t name_stem_within(const char *name, size_t len, size_t max, char out[STEM_MAX]) {
    size_t used;
    if (escape(name, len, max, out, &used))
        return used;
    char hash[HASH_TEXT + 1];
    snprintf(hash, sizeof hash, "~%016llx", (unsigned long long)fnv1a64(FNV1A64_START, name, len));
    used = cut_at(out);
    memcpy(out + used, hash, HASH_TEXT);
    return used + HASH_TEXT;
}

size_t name_stem(const char *name, size_t len, char out[STEM_MAX]) {
    return name_stem_within(name, len, STEM_MAX, out);
}

bool name_is_cut(const char *stem, size_t len) {
    return len > HASH_TEXT && stem[len - HASH_TEXT] == '~';
}

void tree_file_name(const char *name, size_t len, const char *suffix, char out[CKPT_NAME_MAX + 1]) {
    size_t used = name_stem_within(name, len, CKPT_NAME_MAX - strlen(suffix), out);
    memcpy(out + used, suffix, strlen(suffix) + 1);
}

/* ---- the table ---------------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct stems *stems, const char *stem, size_t len) {
    return block_digest(stems->key, stem, len);
}

static bool has_stem(const struct tensor *tensor, const char *stem, size_t len) {
    char other[STEM_MAX];
    return name_stem(tensor->name, tensor->name_len, other) == len && !memcmp(stem, other, len);
}

/* The slot of that stem, or the free one where it belongs. */
static uint64_t *probe(const struct stems *stems, uint64_t hash, const char *stem, size_t len) {
    for (uint64_t at = hash;; at++) {
        uint64_t *slot = &stems->slots[at & stems->mask];
        if (!*slot)
            return slot;
        const struct tensor *tensor = &stems->group->items[(uint32_t)*slot - 1];
        if (*slot >> 32 == hash >> 32 && has_stem(tensor, stem, len))
            return slot;
    }
}

static int insert(struct stems *stems, uint32_t tensor, struct ckpt_err *err) {
    const struct tensor *items = stems->group->items;
    char stem[STEM_MAX];
    size_t len = name_stem(items[tensor].name, items[tensor].name_len, stem);
    uint64_t hash = hash_of(stems, stem, len);
    uint64_t *slot = probe(stems, hash, stem, len);
    if (*slot) {
        const struct tensor *first = &items[(uint32_t)*slot - 1], *second = &items[tensor];
        struct quoted a, b, file;
        return err_set(err, CKPT_E_LIMIT, "tensors %s and %s (numbers %u and %u) get the same file name %s",
            quote(&a, first->name, first->name_len), quote(&b, second->name, second->name_len),
            (uint32_t)*slot - 1, tensor, quote(&file, stem, len));
    }
    *slot = hash >> 32 << 32 | (tensor + 1);
    return 0;
}

int stems_build(
    const struct group *group, const struct block_key *key, struct stems *ret_stems, struct ckpt_err *err) {
    struct stems stems = {.group = group, .key = key};
    if (!group->count) {
        *ret_stems = stems;
        return 0;
    }
    uint64_t slots = 4;
    while (slots < group->count + group->count / 2)
        slots *= 2;
    stems.mask = slots - 1;
    stems.slots = calloc(slots, sizeof *stems.slots);
    if (!stems.slots)
        return err_set(
            err, CKPT_E_NOMEM, "no memory for the names of %llu tensors", (unsigned long long)group->count);
    int rc = 0;
    for (uint64_t i = 0; i < group->count && !rc; i++)
        rc = insert(&stems, (uint32_t)i, err);
    if (rc)
        stems_free(&stems);
    else
        *ret_stems = stems;
    return rc;
}

bool stems_find(const struct stems *stems, const char *stem, size_t len, uint32_t *ret_tensor) {
    if (!stems->slots || len > STEM_MAX)
        return false;
    uint64_t slot = *probe(stems, hash_of(stems, stem, len), stem, len);
    if (slot)
        *ret_tensor = (uint32_t)slot - 1;
    return slot != 0;
}

void stems_free(struct stems *stems) {
    free(stems->slots);
    *stems = (struct stems){0};
}
