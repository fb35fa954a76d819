/* SPDX-License-Identifier: Apache-2.0 */
/* Our own mount, told from what others have mounted at the same path. */
#ifndef FUSE_OWN_H
#define FUSE_OWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fuse_session;

/* As the kernel names a mount; device 0: not known, and taken for what is at the path. */
struct own {
    dev_t device;
    uint64_t id;
};

/* What is mounted at path now; asks no daemon. */
struct own own_find(const char *path);
/* False when path leads to another mount, or nowhere. */
bool own_is_at(const struct own *own, const char *path);

/* Likewise, by the list of mounts: looking at path would count as using it. True as well where it cannot be
 * told (before Linux 5.8). */
bool own_is_bare(const struct own *own);

/* Ends the session's connection and unmounts it. False: path does not lead to it any more, so that what is
 * there stays, and so does ours below it, dead. */
bool own_unmount(const struct own *own, const char *path, struct fuse_session *session);

#endif
