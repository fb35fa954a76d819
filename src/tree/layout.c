/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/layout.h"
#include "base/quote.h"

#include "tree/names.h"
#include "tree/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes in the order in which they were added; the first failure is kept and stops the rest. */
struct builder {
    struct node *nodes;
    uint32_t count, cap;
    int rc;
    struct ckpt_err *err;
};

/* ---- adding paths ----------------------------------------------------------------------------------------
 */

static uint32_t find_child(const struct builder *b, uint32_t dir, const char *name, size_t len) {
    for (uint32_t i = 1; i < b->count; i++)
        if (b->nodes[i].parent == dir && b->nodes[i].name_len == len && !memcmp(b->nodes[i].name, name, len))
            return i;
    return 0; /* the root is nobody's child */
}

static uint32_t append(struct builder *b, struct node node) {
    if (b->count == b->cap) {
        uint32_t cap = b->cap ? b->cap * 2 : 64;
        struct node *grown = reallocarray(b->nodes, cap, sizeof *grown);
        if (!grown) {
            b->rc = err_set(b->err, CKPT_E_NOMEM, "no memory for %u files", cap);
            return 0;
        }
        b->nodes = grown;
        b->cap = cap;
    }
    node.span = NO_SPAN;
    b->nodes[b->count] = node;
    return b->count++;
}

/* Adds the file (or directory) `path`, making the directories that it needs; its index. */
static uint32_t add(
    struct builder *b, const char *path, enum content content, enum group_kind group, uint32_t number) {
    uint32_t dir = 0;
    for (const char *name = path; !b->rc; name += strcspn(name, "/") + 1) {
        size_t len = strcspn(name, "/");
        bool last = name[len] == '\0';
        uint32_t child = find_child(b, dir, name, len);
        if (child && (b->nodes[child].content != CONTENT_DIR || (last && content != CONTENT_DIR)))
            b->rc = err_set(b->err, CKPT_E_LIMIT, "two files of the tree are called '%s'", path);
        else if (!child)
            child = append(b, (struct node){.name = name,
                                  .name_len = (uint32_t)len,
                                  .parent = dir,
                                  .content = last ? content : CONTENT_DIR,
                                  .group = group,
                                  .number = number});
        if (last)
            return child;
        dir = child;
    }
    return 0;
}

/* ---- spans ------------------------------------------------------------------------------------------------
 */

static void add_span(struct builder *b, struct layout *layout, struct span span) {
    if (b->rc || !span.count)
        return;
    b->nodes[span.dir].span = layout->span_count;
    layout->spans[layout->span_count++] = span;
}

/* How many of the group have an .npy; a view whose size does not fit fails here and not at its first stat. */
static uint64_t count_npy(struct builder *b, const struct group *group) {
    uint64_t count = 0, bytes;
    for (uint64_t i = 0; i < group->count; i++) {
        const struct tensor *tensor = &group->items[i];
        if (!npy_exists(tensor))
            continue;
        if (!npy_size(tensor, &bytes)) {
            struct quoted name;
            b->rc = err_set(b->err, CKPT_E_LIMIT, "the .npy of tensor %s (%llu elements) passes 2^63 bytes",
                quote(&name, tensor->name, tensor->name_len), (unsigned long long)tensor->elements);
            return 0;
        }
        count++;
    }
    return count;
}

static uint32_t *new_members(struct builder *b, uint64_t count) {
    uint32_t *members = calloc(count, sizeof *members);
    if (!members)
        b->rc = err_set(b->err, CKPT_E_NOMEM, "no memory for %llu files", (unsigned long long)count);
    return members;
}

static uint32_t *list_npy(struct builder *b, const struct group *group, uint64_t count) {
    uint32_t *members = new_members(b, count);
    for (uint64_t i = 0, used = 0; members && i < group->count; i++)
        if (npy_exists(&group->items[i]))
            members[used++] = (uint32_t)i;
    return members;
}

static void add_group(
    struct builder *b, struct layout *layout, const struct catalog *catalog, enum group_kind kind) {
    static const char *const raw_folders[GROUP_COUNT] = {"raw/tensors", "raw/state", "raw/optimizer"};
    const struct group *group = &catalog->groups[kind];
    if (!group->present)
        return;
    struct span npy = {.content = CONTENT_NPY, .group = kind};
    npy.dir = add(b, group_folders[kind], CONTENT_DIR, kind, 0);
    npy.count = count_npy(b, group);
    if (npy.count && npy.count < group->count)
        npy.members = list_npy(b, group, npy.count);
    if (b->rc)
        free(npy.members);
    add_span(b, layout, npy);
    if (!group->count)
        return;
    struct span raw = {.content = CONTENT_RAW, .group = kind, .count = group->count};
    raw.dir = add(b, raw_folders[kind], CONTENT_DIR, kind, 0);
    add_span(b, layout, raw);
}

/* ---- everything -------------------------------------------------------------------------------------------
 */

static void add_envelope(struct builder *b, struct layout *layout, const struct envelope *envelope) {
    add(b, "envelope/envelope.json", CONTENT_ENVELOPE, 0, 0);
    add(b, "envelope/header.bin", CONTENT_HEADER, 0, 0);
    add(b, "envelope/payload.bin", CONTENT_PAYLOAD, 0, 0);
    add(b, "envelope/SHA256SUMS", CONTENT_SUMS, 0, 0);
    struct span chunks = {.content = CONTENT_CHUNK, .count = envelope->chunk_count};
    chunks.dir = add(b, "envelope/chunks", CONTENT_DIR, 0, 0);
    add_span(b, layout, chunks);
}

static void add_exports(struct builder *b, const struct catalog *catalog) {
    static const char *const paths[GROUP_COUNT] = {
        "export/model.safetensors", "export/state.safetensors", "export/optimizer.safetensors"};
    for (unsigned i = 0; i < GROUP_COUNT; i++)
        if (catalog->groups[i].count)
            add(b, paths[i], CONTENT_EXPORT, i, 0);
}

/* gpu/tensors exists even when nothing is selected. */
static void add_device(struct builder *b, struct layout *layout, const struct catalog *catalog,
    const struct tree_device *device) {
    const struct group *group = &catalog->groups[GROUP_TENSORS];
    struct span span = {.content = CONTENT_ON_DEVICE, .group = GROUP_TENSORS};
    add(b, "gpu/device.json", CONTENT_DEVICE, 0, 0);
    span.dir = add(b, "gpu/tensors", CONTENT_DIR, GROUP_TENSORS, 0);
    if (b->rc || !group->count)
        return;
    span.members = new_members(b, group->count);
    for (uint64_t i = 0; span.members && i < group->count; i++)
        if (device->selects(device->arg, &group->items[i]))
            span.members[span.count++] = (uint32_t)i;
    if (!span.count)
        free(span.members);
    add_span(b, layout, span);
}

static void add_all(struct builder *b, struct layout *layout, const struct catalog *catalog,
    const struct tree_device *device) {
    append(b, (struct node){.name = "", .content = CONTENT_DIR});
    add(b, "checkpoint.json", CONTENT_CHECKPOINT, 0, 0);
    for (uint32_t i = 0; i < catalog->document_count; i++)
        add(b, catalog->documents[i].path, CONTENT_DOCUMENT, 0, i);
    add(b, "tensors.json", CONTENT_TENSORS_JSON, 0, 0);
    add(b, "verify.json", CONTENT_VERIFY, 0, 0);
    for (unsigned i = 0; i < GROUP_COUNT; i++)
        add_group(b, layout, catalog, i);
    for (uint32_t i = 0; i < catalog->blob_count; i++)
        add(b, catalog->blobs[i].path, CONTENT_BLOB, 0, i);
    if (catalog->envelope)
        add_envelope(b, layout, catalog->envelope);
    if (catalog->exports)
        add_exports(b, catalog);
    if (device)
        add_device(b, layout, catalog, device);
}

/* Moves the nodes into their final order: directory by directory, so that children are consecutive. */
static int arrange(const struct builder *b, struct layout *layout, struct ckpt_err *err) {
    struct node *nodes = calloc(b->count, sizeof *nodes);
    uint32_t *origin = calloc(b->count, sizeof *origin); /* where nodes[i] was added */
    if (!nodes || !origin) {
        free(nodes);
        free(origin);
        return err_set(err, CKPT_E_NOMEM, "no memory for %u files", b->count);
    }
    uint32_t used = 1;
    nodes[0] = b->nodes[0];
    for (uint32_t dir = 0; dir < used; dir++) {
        if (nodes[dir].span != NO_SPAN)
            layout->spans[nodes[dir].span].dir = dir;
        nodes[dir].first_child = used;
        for (uint32_t i = 1; nodes[dir].content == CONTENT_DIR && i < b->count; i++) {
            if (b->nodes[i].parent != origin[dir])
                continue;
            origin[used] = i;
            nodes[used] = b->nodes[i];
            nodes[used++].parent = dir;
            nodes[dir].children++;
            nodes[dir].folders += b->nodes[i].content == CONTENT_DIR;
        }
    }
    free(origin);
    layout->nodes = nodes;
    layout->node_count = used;
    return 0;
}

static int number_inodes(struct layout *layout, struct ckpt_err *err) {
    layout->total = layout->node_count;
    for (uint32_t i = 0; i < layout->span_count; i++) {
        struct span *span = &layout->spans[i];
        if (span->count > LAYOUT_INODES_MAX - layout->total)
            return err_set(err, CKPT_E_LIMIT, "%llu more files after %llu: more than %llu",
                (unsigned long long)span->count, (unsigned long long)layout->total,
                (unsigned long long)LAYOUT_INODES_MAX);
        span->first = layout->total + 1;
        layout->total += span->count;
    }
    return 0;
}

static int check_counts(const struct catalog *catalog, struct ckpt_err *err) {
    for (unsigned i = 0; i < GROUP_COUNT; i++)
        if (catalog->groups[i].count >= LAYOUT_INODES_MAX)
            return err_set(err, CKPT_E_LIMIT, "%llu tensors in %s: more than %llu",
                (unsigned long long)catalog->groups[i].count, group_folders[i],
                (unsigned long long)LAYOUT_INODES_MAX);
    return 0;
}

int layout_build(const struct catalog *catalog, const struct tree_device *device, struct layout *ret_layout,
    struct ckpt_err *err) {
    int rc = check_counts(catalog, err);
    if (rc)
        return rc;
    struct layout layout = {0};
    struct builder b = {.err = err};
    add_all(&b, &layout, catalog, device);
    rc = b.rc ? b.rc : arrange(&b, &layout, err);
    free(b.nodes);
    if (!rc)
        rc = number_inodes(&layout, err);
    if (rc)
        layout_free(&layout);
    else
        *ret_layout = layout;
    return rc;
}

void layout_free(struct layout *layout) {
    for (uint32_t i = 0; i < layout->span_count; i++)
        free(layout->spans[i].members);
    free(layout->nodes);
    *layout = (struct layout){0};
}

/* ---- inodes -----------------------------------------------------------------------------------------------
 */

bool layout_ref(const struct layout *layout, uint64_t ino, struct ref *ret_ref) {
    if (ino == 0 || ino > layout->total)
        return false;
    if (ino <= layout->node_count) {
        const struct node *node = &layout->nodes[ino - 1];
        *ret_ref = (struct ref){.ino = ino,
            .dir = node->parent,
            .content = node->content,
            .group = node->group,
            .number = node->number,
            .node = node};
        return true;
    }
    const struct span *span = layout->spans;
    while (ino - span->first >= span->count)
        span++;
    uint64_t at = ino - span->first;
    *ret_ref = (struct ref){.ino = ino,
        .dir = span->dir,
        .content = span->content,
        .group = span->group,
        .number = span->members ? span->members[at] : at};
    return true;
}

uint64_t span_inode(const struct span *span, uint64_t number) {
    if (!span->members)
        return number < span->count ? span->first + number : 0;
    uint64_t low = 0, high = span->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (span->members[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < span->count && span->members[low] == number ? span->first + low : 0;
}
