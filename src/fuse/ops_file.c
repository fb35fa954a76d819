/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* An open file. All are in a list: a lazily detached mount ends without releasing what is still open. */
struct handle {
    struct ckpt_file *file;
    struct handle *before, *after;
};

static struct handle *handle_of(const struct fuse_file_info *info) {
    return (struct handle *)(uintptr_t)info->fh;
}

static void handle_add(struct front *front, struct handle *handle) {
    pthread_mutex_lock(&front->lock);
    handle->after = front->handles;
    if (handle->after)
        handle->after->before = handle;
    front->handles = handle;
    pthread_mutex_unlock(&front->lock);
}

static void handle_close(struct front *front, struct handle *handle) {
    pthread_mutex_lock(&front->lock);
    if (handle->before)
        handle->before->after = handle->after;
    else
        front->handles = handle->after;
    if (handle->after)
        handle->after->before = handle->before;
    pthread_mutex_unlock(&front->lock);
    ckpt_file_close(handle->file);
    free(handle);
}

void ops_close_files(struct front *front) {
    while (front->handles)
        handle_close(front, front->handles);
}

/* Verifying a large unit takes long: stop when the reader was killed or the mount is going away. */
static bool unwanted(void *arg) {
    fuse_req_t req = arg;
    const struct front *front = fuse_req_userdata(req);
    return fuse_req_interrupted(req) || fuse_session_exited(front->session);
}

static int handle_open(fuse_req_t req, uint64_t ino, struct handle **ret_handle, struct ckpt_err *err) {
    struct front *front = fuse_req_userdata(req);
    const struct ckpt_cancel cancel = {.asked = unwanted, .arg = req};

    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle) {
        *err = (struct ckpt_err){.code = CKPT_E_NOMEM};
        return CKPT_E_NOMEM;
    }
    int rc = ckpt_file_open(front->ckpt, ino, &handle->file, &cancel, err);
    if (rc) {
        free(handle);
        return rc;
    }
    handle_add(front, handle);
    *ret_handle = handle;
    return 0;
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
    struct front *front = front_of(req);
    struct ckpt_stat node;
    struct handle *handle;
    struct ckpt_err err;
    if ((info->flags & O_ACCMODE) != O_RDONLY || (info->flags & O_TRUNC)) {
        fuse_reply_err(req, EROFS);
        return;
    }
    if (ckpt_stat(front->ckpt, ino, &node, &err) != 0 || handle_open(req, ino, &handle, &err) != 0) {
        front_fail(req, &err);
        return;
    }
    info->fh = (uintptr_t)handle;
    info->keep_cache = !node.dynamic;
    info->direct_io = node.dynamic;
    if (fuse_reply_open(req, info) != 0) /* the caller is gone: no release will follow */
        handle_close(front, handle);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
    (void)ino;
    handle_close(fuse_req_userdata(req), handle_of(info));
    fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *info) {
    struct front *front = fuse_req_userdata(req);
    const struct ckpt_cancel cancel = {.asked = unwanted, .arg = req};
    struct ckpt_err err;
    size_t len;
    (void)ino;
    char *bytes = front_scratch(front, size);
    if (!bytes)
        fuse_reply_err(req, ENOMEM);
    else if (ckpt_file_read(handle_of(info)->file, (uint64_t)off, bytes, size, &len, &cancel, &err) != 0)
        front_fail(req, &err);
    else
        fuse_reply_buf(req, bytes, len);
}

void ops_add_files(struct fuse_lowlevel_ops *ops) {
    ops->open = op_open;
    ops->release = op_release;
    ops->read = op_read;
}
