/* SPDX-License-Identifier: Apache-2.0 */
/* The public API: wiring of the layers, no logic of its own. */
#include "ckpt.h"

#include "base/err.h"
#include "hash/hash.h"
#include "open.h"

#include <stdlib.h>
#include <string.h>

#ifndef CKPT_VERSION
#define CKPT_VERSION "unknown"
#endif

const char *ckpt_version(void) {
    return CKPT_VERSION;
}

/* Everything that FULL promises before ckpt_open returns. */
static int check_everything(struct ckpt *ckpt, const struct ckpt_options *opt, struct ckpt_err *err) {
    int rc = guard_check_all(ckpt->guard, false, opt->cancel, opt->progress, err);
    if (rc || !ckpt->opened.catalog.inner.count)
        return rc;
    return pass_table(ckpt->opened.source, &ckpt->opened.catalog.inner, opt->cancel, opt->progress, err);
}

static int build(struct ckpt *ckpt, const struct ckpt_options *opt, struct ckpt_err *err) {
    const struct guard_options guarding = {
        .mode = opt->verify, .cache_bytes = opt->cache_bytes, .log = opt->log};
    struct opened *opened = &ckpt->opened;
    int rc = guard_new(opened->source, &opened->catalog.units, opened->witness, &guarding, &ckpt->guard, err);
    if (!rc && opt->gpu)
        rc = gpu_files_new(opt->gpu, &opt->log, &opened->catalog, ckpt->guard, &ckpt->gpu, err);
    if (!rc)
        rc = tree_new(&opened->catalog, ckpt->guard, gpu_files_device(ckpt->gpu), &ckpt->tree, err);
    if (!rc && opt->verify == CKPT_VERIFY_FULL)
        rc = check_everything(ckpt, opt, err);
    return rc;
}

int ckpt_open(
    const char *path, const struct ckpt_options *opt, struct ckpt **ret_ckpt, struct ckpt_err *err) {
    static const struct ckpt_options defaults = {0};
    struct ckpt *ckpt = calloc(1, sizeof *ckpt);
    if (!ckpt)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    if (!opt)
        opt = &defaults;
    int rc = open_lazily(path, opt, &ckpt->opened, err);
    if (!rc)
        rc = build(ckpt, opt, err);
    if (rc) {
        ckpt_close(ckpt);
        return rc;
    }
    *ret_ckpt = ckpt;
    return 0;
}

int ckpt_start(struct ckpt *ckpt, struct ckpt_err *err) {
    return guard_start(ckpt->guard, err);
}

void ckpt_close(struct ckpt *ckpt) {
    if (!ckpt)
        return;
    tree_free(ckpt->tree);
    gpu_files_free(ckpt->gpu);
    guard_free(ckpt->guard);
    open_undo(&ckpt->opened);
    free(ckpt);
}

uint64_t ckpt_node_count(const struct ckpt *ckpt) {
    return tree_count(ckpt->tree);
}

void ckpt_source(const struct ckpt *ckpt, struct ckpt_source_info *ret_info) {
    const struct source_stat *at = &ckpt->opened.source->opened;
    *ret_info = (struct ckpt_source_info){
        .bytes = ckpt->opened.catalog.source_bytes,
        .atime_sec = at->atime_sec,
        .atime_nsec = at->atime_nsec,
        .mtime_sec = at->mtime_sec,
        .mtime_nsec = at->mtime_nsec,
        .ctime_sec = at->ctime_sec,
        .ctime_nsec = at->ctime_nsec,
    };
}

int ckpt_stat(struct ckpt *ckpt, uint64_t ino, struct ckpt_stat *ret_stat, struct ckpt_err *err) {
    return tree_stat(ckpt->tree, ino, ret_stat, err);
}

int ckpt_lookup(
    struct ckpt *ckpt, uint64_t dir, const char *name, struct ckpt_stat *ret_stat, struct ckpt_err *err) {
    return tree_lookup(ckpt->tree, dir, name, ret_stat, err);
}

int ckpt_entry(
    struct ckpt *ckpt, uint64_t dir, uint64_t index, struct ckpt_dirent *ret_entry, struct ckpt_err *err) {
    return tree_entry(ckpt->tree, dir, index, ret_entry, err);
}

int ckpt_resolve(struct ckpt *ckpt, const char *path, struct ckpt_stat *ret_stat, struct ckpt_err *err) {
    struct ckpt_stat at;
    int rc = tree_stat(ckpt->tree, 1, &at, err);
    while (!rc && *(path += strspn(path, "/"))) {
        char name[CKPT_NAME_MAX + 1];
        size_t len = strcspn(path, "/");
        if (len > CKPT_NAME_MAX)
            return err_set(err, CKPT_E_NOENT, "a name of %zu bytes: the longest has %d", len, CKPT_NAME_MAX);
        memcpy(name, path, len);
        name[len] = '\0';
        path += len;
        rc = tree_lookup(ckpt->tree, at.ino, name, &at, err);
    }
    if (!rc)
        *ret_stat = at;
    return rc;
}

/* A ckpt_file is the tree's file under its public name. */
static struct tree_file *tree_side(const struct ckpt_file *file) {
    return (struct tree_file *)(uintptr_t)file;
}

int ckpt_file_open(struct ckpt *ckpt, uint64_t ino, struct ckpt_file **ret_file,
    const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    struct tree_file *file;
    int rc = tree_open(ckpt->tree, ino, &file, cancel, err);
    if (!rc)
        *ret_file = (struct ckpt_file *)file;
    return rc;
}

void ckpt_file_close(struct ckpt_file *file) {
    tree_close(tree_side(file));
}

uint64_t ckpt_file_size(const struct ckpt_file *file) {
    return tree_file_size(tree_side(file));
}

int ckpt_file_read(struct ckpt_file *file, uint64_t offset, void *buf, size_t len, size_t *ret_len,
    const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    return tree_read(tree_side(file), offset, buf, len, ret_len, cancel, err);
}

int ckpt_xattr_get(struct ckpt *ckpt, uint64_t ino, const char *name, char *buf, size_t cap, size_t *ret_len,
    struct ckpt_err *err) {
    return tree_xattr_get(ckpt->tree, ino, name, buf, cap, ret_len, err);
}

int ckpt_xattr_list(
    struct ckpt *ckpt, uint64_t ino, char *buf, size_t cap, size_t *ret_len, struct ckpt_err *err) {
    return tree_xattr_list(ckpt->tree, ino, buf, cap, ret_len, err);
}
