/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/ops.h"

#include <errno.h>

#define XATTR_BYTES ((size_t)64 * 1024) /* the kernel's limit */

static size_t cap_of(size_t size) {
    return size < XATTR_BYTES ? size : XATTR_BYTES;
}

/* What a call that wrote len bytes, or asked for their number with size 0, is answered with. */
static void reply(
    fuse_req_t req, int rc, const struct ckpt_err *err, const char *bytes, size_t len, size_t size) {
    if (rc == CKPT_E_NOENT)
        fuse_reply_err(req, ENODATA);
    else if (rc == 0 && size == 0)
        fuse_reply_xattr(req, len);
    else if (rc == CKPT_E_LIMIT)
        fuse_reply_err(req, ERANGE);
    else if (rc)
        front_fail(req, err);
    else
        fuse_reply_buf(req, bytes, len);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size) {
    struct front *front = front_of(req);
    struct ckpt_err err;
    char bytes[XATTR_BYTES];
    size_t len = 0;
    int rc = ckpt_xattr_get(front->ckpt, ino, name, bytes, cap_of(size), &len, &err);
    reply(req, rc, &err, bytes, len, size);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size) {
    struct front *front = front_of(req);
    struct ckpt_err err;
    char bytes[XATTR_BYTES];
    size_t len = 0;
    int rc = ckpt_xattr_list(front->ckpt, ino, bytes, cap_of(size), &len, &err);
    reply(req, rc, &err, bytes, len, size);
}

void ops_add_xattrs(struct fuse_lowlevel_ops *ops) {
    ops->getxattr = op_getxattr;
    ops->listxattr = op_listxattr;
}
