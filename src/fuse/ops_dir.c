/* SPDX-License-Identifier: Apache-2.0 */
/* Directories have no state: an offset is the number of entries before it, "." and ".." included. */
#include "fuse/ops.h"

/* Entry number `at` of dir, counting "." and ".."; NOENT past the last. */
static int entry_at(
    struct front *front, uint64_t dir, uint64_t at, struct ckpt_dirent *ret_entry, struct ckpt_err *err) {
    if (at >= 2)
        return ckpt_entry(front->ckpt, dir, at - 2, ret_entry, err);
    int rc = ckpt_stat(front->ckpt, dir, &ret_entry->stat, err);
    if (!rc && at == 1)
        rc = ckpt_stat(front->ckpt, ret_entry->stat.parent, &ret_entry->stat, err);
    ret_entry->name[0] = ret_entry->name[1] = '.';
    ret_entry->name[at + 1] = '\0';
    return rc;
}

/* Bytes that the entry takes, or more than cap when it does not fit. */
static size_t put_entry(
    fuse_req_t req, char *bytes, size_t cap, const struct ckpt_dirent *entry, uint64_t at, bool plus) {
    const struct front *front = fuse_req_userdata(req);
    struct fuse_entry_param param;
    front_entry(front, &entry->stat, &param);
    if (!plus)
        return fuse_add_direntry(req, bytes, cap, entry->name, &param.attr, (off_t)(at + 1));
    if (at < 2)
        param.ino = 0; /* the kernel knows these two, and does not count them as looked up */
    return fuse_add_direntry_plus(req, bytes, cap, entry->name, &param, (off_t)(at + 1));
}

#define LIST_BYTES ((size_t)32 * 1024) /* what C libraries ask for at a time */

static void list(fuse_req_t req, uint64_t dir, size_t size, uint64_t at, bool plus) {
    struct front *front = front_of(req);
    struct ckpt_dirent entry;
    struct ckpt_err err;
    char bytes[LIST_BYTES];
    size_t used = 0;
    int rc;
    size = size < sizeof bytes ? size : sizeof bytes;
    while ((rc = entry_at(front, dir, at, &entry, &err)) == 0) {
        size_t len = put_entry(req, bytes + used, size - used, &entry, at, plus);
        if (len > size - used)
            break;
        used += len;
        at++;
    }
    if (rc && (rc != CKPT_E_NOENT || at == 0))
        front_fail(req, &err);
    else
        fuse_reply_buf(req, bytes, used);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *info) {
    (void)info;
    list(req, ino, size, (uint64_t)off, false);
}

static void op_readdirplus(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *info) {
    (void)info;
    list(req, ino, size, (uint64_t)off, true);
}

void ops_add_dirs(struct fuse_lowlevel_ops *ops) {
    ops->readdir = op_readdir;
    ops->readdirplus = op_readdirplus;
}
