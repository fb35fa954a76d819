/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/ops.h"

#include <errno.h>
#include <unistd.h>

#define FRAGMENT 4096
/* Reads in flight: the kernel would let few readers that wait for a digest block all others. */
#define BACKGROUND 512

static void op_init(void *userdata, struct fuse_conn_info *conn) {
    struct front *front = userdata;
    /* Replies come from memory: splicing 1 MiB and a header does not fit a pipe and costs a copy more. */
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    /* Sizes and times do not change, so there is nothing to notice by them. */
    conn->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
    /* The kernel asks for attributes along with the names where somebody looks at them (100 us a file when it
     * is asked about alone), and for names alone elsewhere, which takes a sixth of the time. */
    conn->want |= conn->capable & (FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
                                      FUSE_CAP_READDIRPLUS_AUTO);
    /* With it, who reads with O_DIRECT and waits for a digest could not be killed. */
    conn->want &= ~(unsigned)FUSE_CAP_ASYNC_DIO;
    conn->max_write =
        (unsigned)POOL_BUFFER_BYTES; /* of reads, too: the number of pages in a request follows */
    conn->max_background = BACKGROUND;
    conn->congestion_threshold = BACKGROUND * 3 / 4;
    sem_post(&front->initialized);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct front *front = front_of(req);
    struct fuse_entry_param entry = {.entry_timeout = FRONT_FOREVER}; /* ino 0: there is none, for good */
    struct ckpt_stat node;
    struct ckpt_err err;
    int rc = ckpt_lookup(front->ckpt, parent, name, &node, &err);
    if (rc && rc != CKPT_E_NOENT) {
        front_fail(req, &err);
        return;
    }
    if (!rc)
        front_entry(front, &node, &entry);
    fuse_reply_entry(req, &entry);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file) {
    struct front *front = front_of(req);
    struct ckpt_stat node;
    struct ckpt_err err;
    struct stat attr;
    (void)file;
    if (ckpt_stat(front->ckpt, ino, &node, &err) != 0) {
        front_fail(req, &err);
        return;
    }
    front_stat(front, &node, &attr);
    fuse_reply_attr(req, &attr, front_timeout(&node));
}

/* Asked only on a mount of somebody else's (/dev/fd/N) without default_permissions. */
static void op_access(fuse_req_t req, fuse_ino_t ino, int mask) {
    struct front *front = front_of(req);
    struct ckpt_stat node;
    struct ckpt_err err;
    if (ckpt_stat(front->ckpt, ino, &node, &err) != 0)
        front_fail(req, &err);
    else if (mask & W_OK)
        fuse_reply_err(req, EROFS);
    else
        fuse_reply_err(req, (mask & X_OK) && node.kind == CKPT_FILE ? EACCES : 0);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino) {
    struct front *front = front_of(req);
    (void)ino;
    uint64_t bytes = front->source.bytes;
    struct statvfs info = {
        .f_bsize = FRAGMENT,
        .f_frsize = FRAGMENT,
        .f_blocks = bytes / FRAGMENT + (bytes % FRAGMENT != 0),
        .f_files = ckpt_node_count(front->ckpt),
        .f_namemax = CKPT_NAME_MAX,
        .f_flag = ST_RDONLY,
    };
    fuse_reply_statfs(req, &info);
}

struct fuse_lowlevel_ops ops_table(const struct front *front) {
    /* No forget: nodes live as long as the mount. No flush and no fsync: the kernel stops asking. No opendir:
     * libfuse answers. A refusal would spare the question, but the kernel would then keep names for itself,
     * list by them and ask about each file alone. */
    struct fuse_lowlevel_ops ops = {
        .init = op_init,
        .lookup = op_lookup,
        .getattr = op_getattr,
        .access = op_access,
        .statfs = op_statfs,
    };
    ops_add_files(&ops);
    ops_add_dirs(&ops);
    ops_add_refusals(&ops);
    /* Without them the kernel is told once and `ls -l` does not pay two requests a file. */
    if (front->xattr)
        ops_add_xattrs(&ops);
    return ops;
}
