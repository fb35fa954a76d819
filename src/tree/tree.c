/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/inside.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT 1

/* ---- making -----------------------------------------------------------------------------------------------
 */

static int make_texts(struct tree *tree, struct ckpt_err *err) {
    const struct envelope *envelope = tree->catalog->envelope;
    tree->checkpoint = json_checkpoint(tree->catalog);
    if (envelope) {
        tree->envelope = json_envelope(envelope);
        tree->sums = rows_sums(tree->catalog);
    }
    if (!tree->checkpoint || (envelope && !tree->envelope))
        return err_set(err, CKPT_E_NOMEM, "no memory for checkpoint.json");
    return 0;
}

static int make_stems(struct tree *tree, struct ckpt_err *err) {
    int rc = block_key_new(&tree->key, err);
    for (unsigned i = 0; i < GROUP_COUNT && !rc; i++)
        rc = stems_build(&tree->catalog->groups[i], &tree->key, &tree->stems[i], err);
    return rc;
}

int tree_new(const struct catalog *catalog, struct guard *guard, const struct tree_device *device,
    struct tree **ret_tree, struct ckpt_err *err) {
    struct tree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return err_set(err, CKPT_E_NOMEM, "no memory for a tree");
    tree->catalog = catalog;
    tree->guard = guard;
    tree->device = device;
    pthread_mutex_init(&tree->lock, NULL);
    int rc = layout_build(catalog, device, &tree->layout, err);
    if (!rc)
        rc = make_stems(tree, err);
    if (!rc)
        rc = make_texts(tree, err);
    if (rc) {
        tree_free(tree);
        return err_wrap(err, rc, "lay out the tree");
    }
    *ret_tree = tree;
    return 0;
}

void tree_free(struct tree *tree) {
    if (!tree)
        return;
    for (unsigned i = 0; i < GROUP_COUNT; i++) {
        export_free(tree->exports[i]);
        stems_free(&tree->stems[i]);
    }
    rows_free(&tree->tensors_json);
    layout_free(&tree->layout);
    free(tree->checkpoint);
    free(tree->envelope);
    pthread_mutex_destroy(&tree->lock);
    free(tree);
}

/* ---- inodes -----------------------------------------------------------------------------------------------
 */

uint64_t tree_count(const struct tree *tree) {
    return tree->layout.total;
}

int tree_ref(const struct tree *tree, uint64_t ino, struct ref *ret_ref, struct ckpt_err *err) {
    if (layout_ref(&tree->layout, ino, ret_ref))
        return 0;
    return err_set(err, CKPT_E_NOENT, "no inode %llu: there are %llu", (unsigned long long)ino,
        (unsigned long long)tree->layout.total);
}

const struct tensor *tree_tensor(const struct tree *tree, const struct ref *ref) {
    return &tree->catalog->groups[ref->group].items[ref->number];
}

static const struct span *span_of(const struct tree *tree, const struct node *dir) {
    return dir->span == NO_SPAN ? NULL : &tree->layout.spans[dir->span];
}

/* gpu/: finding out would load the tensor. */
static bool is_made_at_opening(const struct ref *ref) {
    return ref->content == CONTENT_DEVICE || ref->content == CONTENT_ON_DEVICE;
}

static int file_size(struct tree *tree, const struct ref *ref, uint64_t *ret_size, struct ckpt_err *err) {
    if (ref->content == CONTENT_NPY) { /* without rendering its header: listings ask for many */
        (void)npy_size(tree_tensor(tree, ref), ret_size); /* it fits: the layout asked */
        return 0;
    }
    if (is_made_at_opening(ref)) { /* and not for a listing */
        *ret_size = 0;
        return 0;
    }
    struct view view;
    int rc = view_make(tree, ref, &view, NULL, err);
    if (rc)
        return rc;
    *ret_size = view.size;
    view_done(&view);
    return 0;
}

static int stat_ref(
    struct tree *tree, const struct ref *ref, struct ckpt_stat *ret_stat, struct ckpt_err *err) {
    struct ckpt_stat stat = {.ino = ref->ino, .parent = ref->dir + ROOT, .kind = CKPT_FILE, .nlink = 1};
    if (ref->content == CONTENT_DIR) {
        const struct span *span = span_of(tree, ref->node);
        stat.kind = CKPT_DIR;
        stat.size = ref->node->children + (span ? span->count : 0);
        stat.nlink = 2 + ref->node->folders;
    } else {
        int rc = file_size(tree, ref, &stat.size, err);
        if (rc)
            return rc;
        stat.dynamic = ref->content == CONTENT_VERIFY || is_made_at_opening(ref);
    }
    *ret_stat = stat;
    return 0;
}

int tree_stat(struct tree *tree, uint64_t ino, struct ckpt_stat *ret_stat, struct ckpt_err *err) {
    struct ref ref;
    int rc = tree_ref(tree, ino, &ref, err);
    return rc ? rc : stat_ref(tree, &ref, ret_stat, err);
}

static int directory(
    const struct tree *tree, uint64_t ino, const struct node **ret_node, struct ckpt_err *err) {
    struct ref ref;
    int rc = tree_ref(tree, ino, &ref, err);
    if (rc)
        return rc;
    if (ref.content != CONTENT_DIR)
        return err_set(err, CKPT_E_INVAL, "inode %llu is no directory", (unsigned long long)ino);
    *ret_node = ref.node;
    return 0;
}

/* ---- names ------------------------------------------------------------------------------------------------
 */

static const char *suffix_of(enum content content) {
    return content == CONTENT_NPY ? ".npy" : content == CONTENT_ON_DEVICE ? ".json" : ".bin";
}

static void chunk_name(uint64_t chunk, char out[CKPT_NAME_MAX + 1]) {
    snprintf(out, CKPT_NAME_MAX + 1, "%08llu.bin", (unsigned long long)chunk);
}

static void name_of(const struct tree *tree, const struct ref *ref, char out[CKPT_NAME_MAX + 1]) {
    if (ref->node) {
        snprintf(out, CKPT_NAME_MAX + 1, "%.*s", (int)ref->node->name_len, ref->node->name);
    } else if (ref->content == CONTENT_CHUNK) {
        chunk_name(ref->number, out);
    } else {
        const struct tensor *tensor = tree_tensor(tree, ref);
        tree_file_name(tensor->name, tensor->name_len, suffix_of(ref->content), out);
    }
}

static uint64_t find_chunk(const struct span *span, const char *name, size_t len) {
    char digits[CKPT_NAME_MAX + 1], again[CKPT_NAME_MAX + 1];
    uint64_t chunk;
    snprintf(digits, sizeof digits, "%.*s", (int)(len - SUFFIX_BYTES), name);
    if (!text_u64(digits, &chunk))
        return 0;
    chunk_name(chunk, again); /* the one way in which it is written */
    return strcmp(again, name) ? 0 : span_inode(span, chunk);
}

/* A stem of STEM_MAX bytes is whole before ".npy" but cut before ".json", and the table only has the former.
 */
static uint64_t find_cut(const struct tree *tree, const struct span *span, const char *name) {
    char again[CKPT_NAME_MAX + 1];
    for (uint64_t i = 0; i < span->count; i++) {
        const struct tensor *tensor = &tree->catalog->groups[span->group].items[span->members[i]];
        tree_file_name(tensor->name, tensor->name_len, suffix_of(span->content), again);
        if (!strcmp(again, name))
            return span->first + i;
    }
    return 0;
}

/* Inode of the span's file `name`, 0 when there is none. */
static uint64_t find_in_span(const struct tree *tree, const struct span *span, const char *name) {
    const char *suffix = suffix_of(span->content);
    size_t len = strlen(name), stem = len - strlen(suffix);
    uint32_t tensor;
    if (len < strlen(suffix) || len > CKPT_NAME_MAX || strcmp(name + stem, suffix) != 0)
        return 0;
    if (span->content == CONTENT_CHUNK)
        return find_chunk(span, name, len);
    if (stems_find(&tree->stems[span->group], name, stem, &tensor))
        return span_inode(span, tensor);
    return span->content == CONTENT_ON_DEVICE && name_is_cut(name, stem) ? find_cut(tree, span, name) : 0;
}

static uint64_t find_in_nodes(const struct tree *tree, const struct node *dir, const char *name) {
    size_t len = strlen(name);
    for (uint32_t i = dir->first_child; i < dir->first_child + dir->children; i++) {
        const struct node *node = &tree->layout.nodes[i];
        if (node->name_len == len && !memcmp(node->name, name, len))
            return i + ROOT;
    }
    return 0;
}

int tree_lookup(
    struct tree *tree, uint64_t dir, const char *name, struct ckpt_stat *ret_stat, struct ckpt_err *err) {
    const struct node *node = NULL;
    int rc = directory(tree, dir, &node, err);
    if (rc)
        return rc;
    const struct span *span = span_of(tree, node);
    uint64_t ino = find_in_nodes(tree, node, name);
    if (!ino && span)
        ino = find_in_span(tree, span, name);
    if (!ino)
        return err_set(err, CKPT_E_NOENT, "no '%.300s' in directory %llu", name, (unsigned long long)dir);
    return tree_stat(tree, ino, ret_stat, err);
}

int tree_entry(
    struct tree *tree, uint64_t dir, uint64_t index, struct ckpt_dirent *ret_entry, struct ckpt_err *err) {
    const struct node *node = NULL;
    int rc = directory(tree, dir, &node, err);
    if (rc)
        return rc;
    const struct span *span = span_of(tree, node);
    uint64_t ino = node->first_child + index + ROOT;
    if (index >= node->children) {
        if (!span || index - node->children >= span->count)
            return err_set(err, CKPT_E_NOENT, "directory %llu has no entry %llu", (unsigned long long)dir,
                (unsigned long long)index);
        ino = span->first + (index - node->children);
    }
    struct ref ref;
    rc = tree_ref(tree, ino, &ref, err);
    if (!rc)
        rc = stat_ref(tree, &ref, &ret_entry->stat, err);
    if (!rc)
        name_of(tree, &ref, ret_entry->name);
    return rc;
}
