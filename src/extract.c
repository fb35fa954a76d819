/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_extract: the tree as plain files. */
#include "base/err.h"
#include "base/ovf.h"
#include "pack/fdio.h"
#include "pack/folder.h"
#include "pack/out.h"
#include "walk.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20)

struct extraction {
    struct ckpt *ckpt;
    const struct ckpt_extract_options *how;
    const struct ckpt_write_options *options;
    struct folder *folder;
    struct timespec times[2]; /* access and modification of everything */
    char *piece;
    bool dynamic; /* it is the turn of these files */
    uint64_t done, total, left_out;
};

/* ---- one file ------------------------------------------------------------------------------------------ */

/* *ret_unreadable: the error is one of reading. */
static int copy(struct extraction *extraction, struct ckpt_file *file, int fd, bool *ret_unreadable,
    struct ckpt_err *err) {
    const struct ckpt_cancel *cancel = extraction->options ? extraction->options->cancel : NULL;
    uint64_t at = 0;
    for (size_t len = 1; len; at += len) {
        int rc = ckpt_file_read(file, at, extraction->piece, PIECE, &len, cancel, err);
        *ret_unreadable = rc != 0;
        if (!rc)
            rc = fdio_write(fd, "its copy", at, extraction->piece, len, err);
        if (rc)
            return rc;
        extraction->done += len;
        out_tell(extraction->options, extraction->done, extraction->total);
    }
    return 0;
}

static int fill(struct extraction *extraction, struct ckpt_file *file, const char *path, bool *ret_unreadable,
    struct ckpt_err *err) {
    int fd = -1;
    *ret_unreadable = false;
    int rc = folder_create(extraction->folder, path, &fd, err);
    if (rc)
        return rc;
    rc = copy(extraction, file, fd, ret_unreadable, err);
    if (!rc && futimens(fd, extraction->times) != 0)
        rc = err_os(err, errno, "its copy: set the times");
    if (close(fd) != 0 && !rc)
        rc = err_os(err, errno, "its copy: close");
    if (rc && *ret_unreadable) /* it may be left out */
        (void)folder_remove(extraction->folder, path, NULL);
    return rc;
}

/* Whether the rest is worth having without what could not be read. */
static bool may_be_left_out(const struct extraction *extraction, int rc) {
    return extraction->how->keep_going && (rc == CKPT_E_CORRUPT || rc == CKPT_E_MISMATCH || rc == CKPT_E_IO);
}

static int leave_out(struct extraction *extraction, const char *path, const struct ckpt_err *fault) {
    extraction->left_out++;
    if (extraction->how->left_out)
        extraction->how->left_out(extraction->how->arg, path, fault);
    return 0;
}

static int extract_file(void *arg, const char *path, const struct ckpt_stat *stat, struct ckpt_err *err) {
    struct extraction *extraction = arg;
    const struct ckpt_cancel *cancel = extraction->options ? extraction->options->cancel : NULL;
    struct ckpt_err fault = {0};
    struct ckpt_file *file = NULL;
    bool unreadable = true;
    if (stat->dynamic != extraction->dynamic)
        return 0;
    int rc = out_stop(extraction->options, err);
    if (rc)
        return rc;
    rc = ckpt_file_open(extraction->ckpt, stat->ino, &file, cancel, &fault);
    if (!rc)
        rc = fill(extraction, file, path, &unreadable, &fault);
    if (file)
        ckpt_file_close(file);
    if (rc && unreadable && may_be_left_out(extraction, rc))
        return leave_out(extraction, path, &fault);
    if (rc && err)
        *err = fault;
    return rc ? err_wrap(err, rc, "%s", path) : 0;
}

/* ---- directories --------------------------------------------------------------------------------------- */

static int make_directory(void *arg, const char *path, struct ckpt_err *err) {
    struct extraction *extraction = arg;
    return *path ? folder_mkdir(extraction->folder, path, err) : 0;
}

static int finish_directory(void *arg, const char *path, struct ckpt_err *err) {
    struct extraction *extraction = arg;
    return folder_times(extraction->folder, path, extraction->times, err);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static int measure_file(void *arg, const char *path, const struct ckpt_stat *stat, struct ckpt_err *err) {
    struct extraction *extraction = arg;
    (void)path;
    (void)err;
    if (!ovf_add(extraction->total, stat->size, &extraction->total))
        extraction->total = UINT64_MAX; /* for progress only */
    return 0;
}

static int measure(struct extraction *extraction, struct selection *selection, struct ckpt_err *err) {
    const struct walker measuring = {.file = measure_file, .arg = extraction};
    int rc = walk(extraction->ckpt, selection, &measuring, err);
    const char *unused = selection_unused(selection);
    if (!rc && unused)
        rc = err_set(err, CKPT_E_INVAL, "no path matches '%s'", unused);
    return rc;
}

/* What changes while it is read (what has been verified so far) comes last. */
static int fill_all(struct extraction *extraction, struct selection *selection, struct ckpt_err *err) {
    const struct walker writing = {make_directory, extract_file, finish_directory, extraction};
    int rc = walk(extraction->ckpt, selection, &writing, err);
    extraction->dynamic = true;
    return rc ? rc : walk(extraction->ckpt, selection, &writing, err);
}

static int write_folder(
    struct extraction *extraction, const char *dir, struct selection *selection, struct ckpt_err *err) {
    int rc = folder_begin(dir, &extraction->folder, err);
    if (rc)
        return rc;
    rc = fill_all(extraction, selection, err);
    if (!rc)
        return folder_commit(extraction->folder, err);
    folder_abandon(extraction->folder);
    return rc;
}

int ckpt_extract(struct ckpt *ckpt, const char *dir, const struct ckpt_extract_options *how,
    const struct ckpt_write_options *options, uint64_t *ret_left_out, struct ckpt_err *err) {
    static const struct ckpt_extract_options everything = {0};
    struct ckpt_source_info source;
    struct selection selection = {0};
    ckpt_source(ckpt, &source);
    struct extraction extraction = {.ckpt = ckpt,
        .how = how ? how : &everything,
        .options = options,
        .times = {{source.atime_sec, source.atime_nsec}, {source.mtime_sec, source.mtime_nsec}},
        .piece = malloc(PIECE)};
    int rc = extraction.piece ? 0 : err_set(err, CKPT_E_NOMEM, "%s: no memory", dir);
    if (!rc)
        rc = selection_make(ckpt, extraction.how->globs, extraction.how->glob_count, &selection, err);
    if (!rc)
        rc = measure(&extraction, &selection, err);
    if (!rc)
        rc = write_folder(&extraction, dir, &selection, err);
    selection_free(&selection);
    free(extraction.piece);
    if (!rc && ret_left_out)
        *ret_left_out = extraction.left_out;
    return rc;
}
