/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define DIRECT_BYTES_MIN ((uint64_t)1 << 20) /* smaller ones are read again sooner than they are streamed */

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
    info->direct_io = node.dynamic || (front->greeting.direct && node.size >= DIRECT_BYTES_MIN);
    if (fuse_reply_open(req, info) != 0) /* the caller is gone: no release will follow */
        handle_close(front, handle);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
    (void)ino;
    handle_close(fuse_req_userdata(req), handle_of(info));
    fuse_reply_err(req, 0);
}

struct request {
    struct ckpt_file *file;
    uint64_t off;
    size_t size;
    const struct ckpt_cancel *cancel;
};

static int read_into(
    const struct request *request, void *buf, size_t size, size_t *ret_len, struct ckpt_err *err) {
    return ckpt_file_read(request->file, request->off, buf, size, ret_len, request->cancel, err);
}

/* Waits, without a buffer, for the digests that reading both ends waits for. */
static int await_digests(const struct request *request, struct ckpt_err *err) {
    struct request last = *request;
    char byte;
    size_t len;
    last.off += request->size - 1;
    int rc = read_into(request, &byte, 1, &len, err);
    return rc ? rc : read_into(&last, &byte, 1, &len, err);
}

/* When most buffers are used, somebody may be waiting for a long digest. */
static int await_buffer(
    struct pool *pool, const struct request *request, char **ret_bytes, struct ckpt_err *err) {
    char *bytes = pool_try(pool);
    int rc = bytes || !request->size ? 0 : await_digests(request, err);
    if (rc)
        return rc;
    if (!bytes && !(bytes = pool_wait(pool))) {
        *err = (struct ckpt_err){.code = CKPT_E_NOMEM};
        return CKPT_E_NOMEM;
    }
    *ret_bytes = bytes;
    return 0;
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *info) {
    struct front *front = fuse_req_userdata(req);
    const struct ckpt_cancel cancel = {.asked = unwanted, .arg = req};
    const struct request request = {
        handle_of(info)->file, (uint64_t)off, size < POOL_BUFFER_BYTES ? size : POOL_BUFFER_BYTES, &cancel};
    struct ckpt_err err;
    char *bytes;
    size_t len;
    (void)ino;
    if (await_buffer(&front->pool, &request, &bytes, &err) != 0) {
        front_fail(req, &err);
        return;
    }
    if (read_into(&request, bytes, request.size, &len, &err) != 0)
        front_fail(req, &err);
    else
        fuse_reply_buf(req, bytes, len);
    pool_give(&front->pool, bytes);
}

void ops_add_files(struct fuse_lowlevel_ops *ops) {
    ops->open = op_open;
    ops->release = op_release;
    ops->read = op_read;
}
