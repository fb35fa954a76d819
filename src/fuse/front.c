/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/front.h"

#include <errno.h>

#define BLKSIZE                                                                                              \
    (128 * 1024) /* programs allocate that much to read any file: larger wastes, smaller is slow */

int front_init(struct front *front, struct ckpt *ckpt, uint64_t reply_bytes) {
    front->ckpt = ckpt;
    ckpt_source(ckpt, &front->source);
    atomic_init(&front->requests, 0);
    pthread_mutex_init(&front->lock, NULL);
    pool_init(&front->pool, reply_bytes);
    return sem_init(&front->initialized, 0, 0) < 0 ? -errno : 0;
}

void front_free(struct front *front) {
    pool_free(&front->pool);
    sem_destroy(&front->initialized);
    pthread_mutex_destroy(&front->lock);
}

struct front *front_of(fuse_req_t req) {
    struct front *front = fuse_req_userdata(req);
    atomic_fetch_add_explicit(&front->requests, 1, memory_order_relaxed);
    return front;
}

void front_stat(const struct front *front, const struct ckpt_stat *node, struct stat *ret_stat) {
    const struct ckpt_source_info *source = &front->source;
    bool dir = node->kind == CKPT_DIR;
    mode_t mode = (dir ? 0555u : 0444u) & ~front->mask;
    *ret_stat = (struct stat){
        .st_ino = node->ino,
        .st_mode = (dir ? S_IFDIR : S_IFREG) | mode,
        .st_nlink = node->nlink,
        .st_uid = front->uid,
        .st_gid = front->gid,
        .st_size = (off_t)node->size,
        .st_blksize = BLKSIZE,
        .st_blocks = dir ? 0 : (blkcnt_t)(node->size / 512 + (node->size % 512 != 0)),
        .st_atim = {.tv_sec = source->atime_sec, .tv_nsec = source->atime_nsec},
        .st_mtim = {.tv_sec = source->mtime_sec, .tv_nsec = source->mtime_nsec},
        .st_ctim = {.tv_sec = source->ctime_sec, .tv_nsec = source->ctime_nsec},
    };
}

double front_timeout(const struct ckpt_stat *node) {
    return node->dynamic ? 0 : FRONT_FOREVER;
}

void front_entry(
    const struct front *front, const struct ckpt_stat *node, struct fuse_entry_param *ret_entry) {
    *ret_entry = (struct fuse_entry_param){
        .ino = node->ino,
        .generation = 1,
        .attr_timeout = front_timeout(node),
        .entry_timeout = FRONT_FOREVER,
    };
    front_stat(front, node, &ret_entry->attr);
}

void front_fail(fuse_req_t req, const struct ckpt_err *err) {
    fuse_reply_err(req, ckpt_errno(err));
}
