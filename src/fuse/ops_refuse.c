/* SPDX-License-Identifier: Apache-2.0 */
/* What a read-only file system refuses. The kernel asks only where the mount itself is not read-only, as a
 * mount behind /dev/fd/N may be. */
#include "fuse/ops.h"

#include <errno.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

static void no_setattr(
    fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi) {
    fuse_reply_err(req, EROFS);
}

static void no_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev) {
    fuse_reply_err(req, EROFS);
}

static void no_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode) {
    fuse_reply_err(req, EROFS);
}

/* unlink and rmdir */
static void no_remove(fuse_req_t req, fuse_ino_t parent, const char *name) {
    fuse_reply_err(req, EROFS);
}

static void no_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name) {
    fuse_reply_err(req, EROFS);
}

static void no_rename(
    fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to, const char *new, unsigned flags) {
    fuse_reply_err(req, EROFS);
}

static void no_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name) {
    fuse_reply_err(req, EROFS);
}

static void no_write(
    fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t len, off_t off, struct fuse_file_info *fi) {
    fuse_reply_err(req, EROFS);
}

static void no_create(
    fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi) {
    fuse_reply_err(req, EROFS);
}

static void no_setxattr(
    fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags) {
    fuse_reply_err(req, EROFS);
}

static void no_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name) {
    fuse_reply_err(req, EROFS);
}

static void no_fallocate(
    fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len, struct fuse_file_info *fi) {
    fuse_reply_err(req, EROFS);
}

void ops_add_refusals(struct fuse_lowlevel_ops *ops) {
    ops->setattr = no_setattr;
    ops->mknod = no_mknod;
    ops->mkdir = no_mkdir;
    ops->unlink = no_remove;
    ops->rmdir = no_remove;
    ops->symlink = no_symlink;
    ops->rename = no_rename;
    ops->link = no_link;
    ops->write = no_write;
    ops->create = no_create;
    ops->setxattr = no_setxattr;
    ops->removexattr = no_removexattr;
    ops->fallocate = no_fallocate;
}
