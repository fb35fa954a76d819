/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/ops.h"

#include <errno.h>
#include <fcntl.h>

static struct ckpt_file *file_of(const struct fuse_file_info *info) {
    return (struct ckpt_file *)(uintptr_t)info->fh;
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
    struct front *front = front_of(req);
    struct ckpt_stat node;
    struct ckpt_file *file;
    struct ckpt_err err;
    if ((info->flags & O_ACCMODE) != O_RDONLY || (info->flags & O_TRUNC)) {
        fuse_reply_err(req, EROFS);
        return;
    }
    if (ckpt_stat(front->ckpt, ino, &node, &err) != 0 || ckpt_file_open(front->ckpt, ino, &file, &err) != 0) {
        front_fail(req, &err);
        return;
    }
    info->fh = (uintptr_t)file;
    info->keep_cache = !node.dynamic;
    info->direct_io = node.dynamic;
    if (fuse_reply_open(req, info) != 0) /* the caller is gone: no release will follow */
        ckpt_file_close(file);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
    (void)ino;
    ckpt_file_close(file_of(info));
    fuse_reply_err(req, 0);
}

/* Verifying a large unit takes long: stop when the reader was killed or the mount is going away. */
static bool unwanted(void *arg) {
    fuse_req_t req = arg;
    const struct front *front = fuse_req_userdata(req);
    return fuse_req_interrupted(req) || fuse_session_exited(front->session);
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
    else if (ckpt_file_read(file_of(info), (uint64_t)off, bytes, size, &len, &cancel, &err) != 0)
        front_fail(req, &err);
    else
        fuse_reply_buf(req, bytes, len);
}

void ops_add_files(struct fuse_lowlevel_ops *ops) {
    ops->open = op_open;
    ops->release = op_release;
    ops->read = op_read;
}
