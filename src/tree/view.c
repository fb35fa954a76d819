/* SPDX-License-Identifier: Apache-2.0 */
/* Which view each kind of file gets. */
#include "tree/inside.h"

#include "base/ovf.h"

#include <stdlib.h>
#include <string.h>

static void add_part(struct view *view, struct segment segment) {
    view->parts[view->count++] = segment;
    view->size += segment.len;
}

static void add_bytes(struct view *view, const void *bytes, uint64_t len) {
    add_part(view, (struct segment){.kind = SEGMENT_BYTES, .at = view->size, .len = len, .of.bytes = bytes});
}

static void add_range(struct view *view, struct range at) {
    add_part(view, (struct segment){.kind = SEGMENT_RANGE, .at = view->size, .len = at.len, .off = at.off});
}

static void add_rows(struct view *view, const struct rows *rows) {
    view->rows = rows;
    view->size += rows_start(rows, rows->count);
}

static int add_text(struct view *view, const char *text, struct ckpt_err *err) {
    if (!text)
        return err_set(err, CKPT_E_NOMEM, "no memory for a file's text");
    add_bytes(view, text, strlen(text));
    return 0;
}

static void set_blame(struct view *view, struct range range) {
    view->damaged = true;
    view->blame = range;
}

/* checkpoint.json and tensors.json are shown before anything is verified, but not when they are known to be
 * wrong, because what they list could not be parsed. */
static void find_blame(struct view *view, const struct tree *tree) {
    const struct catalog *catalog = tree->catalog;
    for (unsigned i = GROUP_TENSORS; i <= GROUP_STATE; i++)
        if (catalog->groups[i].damaged)
            set_blame(view, catalog->groups[i].index);
    if (catalog->lost)
        set_blame(view, catalog->lost_at);
}

/* ---- what is made once, when it is first asked for -------------------------------------------------------
 */

static int add_tensors_json(struct view *view, struct tree *tree, struct ckpt_err *err) {
    pthread_mutex_lock(&tree->lock);
    int rc = tree->tensors_json.starts ? 0 : rows_tensors_json(tree->catalog, &tree->tensors_json, err);
    pthread_mutex_unlock(&tree->lock);
    if (rc)
        return err_wrap(err, rc, "tensors.json");
    find_blame(view, tree);
    add_rows(view, &tree->tensors_json);
    return 0;
}

static int add_export(struct view *view, struct tree *tree, enum group_kind group, struct ckpt_err *err) {
    pthread_mutex_lock(&tree->lock);
    int rc = tree->exports[group] ? 0 : export_new(tree->catalog, group, &tree->exports[group], err);
    pthread_mutex_unlock(&tree->lock);
    if (rc)
        return err_wrap(err, rc, "export of %s", group_folders[group]);
    view->export = tree->exports[group];
    view->rows = &view->export->outline.header;
    view->size = outline_size(&view->export->outline);
    return 0;
}

/* ---- the rest ---------------------------------------------------------------------------------------------
 */

static void add_document(struct view *view, const struct document *document) {
    if (!document->json) { /* of some size, so that it is read and the error seen */
        set_blame(view, document->from);
        view->size = ovf_max(document->from.len, 1);
        return;
    }
    add_bytes(view, document->json, document->json_len);
    if (!document->json_len || document->json[document->json_len - 1] != '\n')
        add_bytes(view, "\n", 1);
}

static int add_npy(
    struct view *view, const struct tree *tree, const struct tensor *tensor, struct ckpt_err *err) {
    struct buf header = {0};
    npy_header(tensor, &header);
    if (header.failed) {
        buf_free(&header);
        return err_set(err, CKPT_E_NOMEM, "no memory for an .npy header");
    }
    view->owned = header.bytes;
    add_bytes(view, header.bytes, header.len);
    add_part(view, npy_body(tree->catalog, tensor, header.len));
    return 0;
}

/* What names, shapes and places of this file were parsed from; the envelope's header vouches for itself. */
void tree_vouchers(const struct tree *tree, const struct ref *ref, struct range vouch[2]) {
    const struct catalog *catalog = tree->catalog;
    switch (ref->content) {
    case CONTENT_DOCUMENT:
        vouch[1] = catalog->documents[ref->number].from;
        break;
    case CONTENT_BLOB:
        vouch[1] = catalog->blobs[ref->number].from;
        break;
    case CONTENT_EXPORT:
    case CONTENT_NPY:
    case CONTENT_RAW:
        vouch[1] = catalog->groups[ref->group].index;
        break;
    default:
        return;
    }
    vouch[0] = catalog->head;
}

struct range tree_range(const struct tree *tree, const struct ref *ref) {
    const struct catalog *catalog = tree->catalog;
    switch (ref->content) {
    case CONTENT_BLOB:
        return catalog->blobs[ref->number].at;
    case CONTENT_PAYLOAD:
        return (struct range){catalog->envelope->header_bytes, catalog->envelope->payload_bytes};
    case CONTENT_CHUNK:
        return unit_get(&catalog->units, ref->number).at;
    case CONTENT_NPY:
    case CONTENT_RAW:
        return tensor_range(catalog, tree_tensor(tree, ref));
    default:
        return (struct range){0, 0};
    }
}

static int add_device(
    struct view *view, const struct tree *tree, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    int rc = tree->device->describe(tree->device->arg, cancel, &view->owned, err);
    return rc ? rc : add_text(view, view->owned, err);
}

/* Loads it: the file is the tensor's hold on the device. */
static int add_on_device(struct view *view, const struct tree *tree, const struct ref *ref,
    const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    const struct tree_device *device = tree->device;
    int rc = device->load(device->arg, tree_tensor(tree, ref), cancel, &view->owned, &view->hold, err);
    if (rc)
        return rc;
    view->device = device;
    return add_text(view, view->owned, err);
}

static int fill(struct view *view, struct tree *tree, const struct ref *ref, const struct ckpt_cancel *cancel,
    struct ckpt_err *err) {
    switch (ref->content) {
    case CONTENT_DOCUMENT:
        add_document(view, &tree->catalog->documents[ref->number]);
        return 0;
    case CONTENT_CHECKPOINT:
        find_blame(view, tree);
        return add_text(view, tree->checkpoint, err);
    case CONTENT_ENVELOPE:
        return add_text(view, tree->envelope, err);
    case CONTENT_VERIFY:
        view->owned = json_verify(tree->catalog, tree->guard);
        return add_text(view, view->owned, err);
    case CONTENT_TENSORS_JSON:
        return add_tensors_json(view, tree, err);
    case CONTENT_EXPORT:
        return add_export(view, tree, ref->group, err);
    case CONTENT_HEADER:
        add_bytes(view, tree->catalog->envelope->header, tree->catalog->envelope->header_bytes);
        return 0;
    case CONTENT_DEVICE:
        return add_device(view, tree, cancel, err);
    case CONTENT_ON_DEVICE:
        return add_on_device(view, tree, ref, cancel, err);
    case CONTENT_SUMS:
        add_rows(view, &tree->sums);
        return 0;
    case CONTENT_NPY:
        return add_npy(view, tree, tree_tensor(tree, ref), err);
    case CONTENT_BLOB:
    case CONTENT_PAYLOAD:
    case CONTENT_CHUNK:
    case CONTENT_RAW:
        add_range(view, tree_range(tree, ref));
        return 0;
    case CONTENT_DIR:
        break;
    }
    return err_set(err, CKPT_E_INVAL, "inode %llu is a directory", (unsigned long long)ref->ino);
}

int view_make(struct tree *tree, const struct ref *ref, struct view *ret_view,
    const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    struct view view = {0};
    int rc = fill(&view, tree, ref, cancel, err);
    if (rc)
        return rc;
    tree_vouchers(tree, ref, view.vouch);
    *ret_view = view;
    return 0;
}

void view_done(struct view *view) {
    if (view->hold)
        view->device->let_go(view->device->arg, view->hold);
    free(view->owned);
}
