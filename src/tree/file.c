/* SPDX-License-Identifier: Apache-2.0 */
/* Open files: the one reader that serves every view. */
#include "tree/inside.h"

#include "base/ovf.h"

#include <stdatomic.h>
#include <stdlib.h>

struct tree_file {
    struct tree *tree;
    struct view view;
    atomic_bool vouched;
};

void tree_close(struct tree_file *file) {
    if (file)
        view_done(&file->view);
    free(file);
}

uint64_t tree_file_size(const struct tree_file *file) {
    return file->view.size;
}

/* The segment that holds the byte at offset < size. */
static struct segment find_segment(const struct view *view, uint64_t offset) {
    for (unsigned i = 0; i < view->count; i++)
        if (offset - view->parts[i].at < view->parts[i].len)
            return view->parts[i];
    if (view->export && offset >= rows_start(view->rows, view->rows->count))
        return export_segment(view->export, offset);
    uint64_t row = rows_find(view->rows, offset), start = rows_start(view->rows, row);
    struct segment segment = {
        .kind = SEGMENT_ROW, .at = start, .len = rows_start(view->rows, row + 1) - start};
    segment.of.row.rows = view->rows;
    segment.of.row.index = row;
    return segment;
}

/* The bytes could not be parsed: why, in the guard's words. */
static int blame(const struct reader *reader, struct range range, struct ckpt_err *err) {
    uint8_t byte;
    int rc = range.len ? guard_read(reader->guard, range.off, &byte, 1, reader->cancel, err) : 0;
    if (rc)
        return rc;
    return err_set(err, CKPT_E_CORRUPT, "bytes %llu to %llu of the source could not be parsed",
        (unsigned long long)range.off, (unsigned long long)(range.off + range.len));
}

/* What the content was derived from must be the bytes that the digests vouch for. Once is enough: the guard
 * remembers, and what was parsed does not change. */
static int vouch(struct tree_file *file, const struct reader *reader, struct ckpt_err *err) {
    if (atomic_load_explicit(&file->vouched, memory_order_acquire))
        return 0;
    int rc = file->view.damaged ? blame(reader, file->view.blame, err) : 0;
    for (unsigned i = 0; i < 2 && !rc; i++)
        if (file->view.vouch[i].len)
            rc = guard_vouch(reader->guard, file->view.vouch[i], reader->cancel, err);
    if (!rc)
        atomic_store_explicit(&file->vouched, true, memory_order_release);
    return rc;
}

/* Nobody reads an empty file, so what it was derived from is judged when it is opened. */
static int judge_empty(struct tree_file *file, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    struct reader reader = {.guard = file->tree->guard, .cancel = cancel};
    int rc = file->view.size ? 0 : vouch(file, &reader, err);
    reader_done(&reader);
    return rc;
}

int tree_open(struct tree *tree, uint64_t ino, struct tree_file **ret_file, const struct ckpt_cancel *cancel,
    struct ckpt_err *err) {
    struct ref ref;
    int rc = tree_ref(tree, ino, &ref, err);
    if (rc)
        return rc;
    struct tree_file *file = calloc(1, sizeof *file);
    if (!file)
        return err_set(err, CKPT_E_NOMEM, "no memory for an open file");
    file->tree = tree;
    rc = view_make(tree, &ref, &file->view, cancel, err);
    if (!rc)
        rc = judge_empty(file, cancel, err);
    if (rc)
        tree_close(file);
    else
        *ret_file = file;
    return rc;
}

int tree_read(struct tree_file *file, uint64_t offset, void *buf, size_t len, size_t *ret_len,
    const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    struct reader reader = {.guard = file->tree->guard, .cancel = cancel};
    const struct view *view = &file->view;
    size_t want = offset < view->size ? (size_t)ovf_min(len, view->size - offset) : 0, done = 0;
    int rc = want ? vouch(file, &reader, err) : 0;
    while (!rc && done < want) {
        struct segment segment = find_segment(view, offset + done);
        uint64_t skip = offset + done - segment.at;
        size_t n = (size_t)ovf_min(segment.len - skip, want - done);
        rc = segment_read(&reader, &segment, skip, (uint8_t *)buf + done, n, err);
        done += n;
    }
    reader_done(&reader);
    if (!rc)
        *ret_len = done;
    return rc;
}
