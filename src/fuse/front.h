/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the FUSE operations know: the checkpoint and how its nodes are shown. It is the userdata of the
 * session and outlives it. Threads: everything but `pool`, `requests` and `handles` is set before the first
 * request.
 */
#ifndef FUSE_FRONT_H
#define FUSE_FRONT_H

#define FUSE_USE_VERSION FUSE_MAKE_VERSION(3, 14)

#include "fuse/pool.h"

#include <ckptfs.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

/* What was agreed with the kernel; set by the thread that answers its greeting, before any other request. */
struct greeting {
    atomic_bool heard;
    uint64_t number; /* of the request, when the kernel can do it; else 0 */
    bool direct;     /* files may be read past the page cache */
};

struct front {
    struct ckpt *ckpt;
    struct fuse_session *session; /* set once it exists */
    struct ckpt_source_info source;
    uid_t uid;
    gid_t gid;
    mode_t mask;
    bool xattr;
    struct pool pool;     /* of buffers for what is read */
    pthread_mutex_t lock; /* of handles */
    struct greeting greeting;
    struct handle *handles; /* open files */
    sem_t initialized;      /* posted when the kernel has said hello */
    atomic_ullong requests; /* so far, but for reads of open files */
};

/* reply_bytes: bound of the memory for replies. Errors: negative errno. */
int front_init(struct front *front, struct ckpt *ckpt, uint64_t reply_bytes);
void front_free(struct front *front);

/* Counts the request and returns the front that is to answer it. */
struct front *front_of(fuse_req_t req);

void front_stat(const struct front *front, const struct ckpt_stat *node, struct stat *ret_stat);
/* An entry that stays valid for good, but for the attributes of a dynamic file. */
void front_entry(const struct front *front, const struct ckpt_stat *node, struct fuse_entry_param *ret_entry);
/* How long the kernel may keep node's attributes, in seconds. */
double front_timeout(const struct ckpt_stat *node);
/* Answers with the errno of a failed ckpt_ call. */
void front_fail(fuse_req_t req, const struct ckpt_err *err);

#define FRONT_FOREVER 1e9 /* seconds; nothing here ever changes */

#endif
