/* SPDX-License-Identifier: Apache-2.0 */
/* The mount point: finding it, mounting, unmounting, the kernel's read-ahead. */
#ifndef FUSE_MOUNT_H
#define FUSE_MOUNT_H

#include "fuse/front.h"
#include "fuse/options.h"

#include <stdbool.h>
#include <sys/types.h>

/* The directory `given`, as an absolute path without links that outlives a chdir (free it); /dev/fd/N stays
 * as it is. Also finds a mount whose daemon is dead. Returns an exit code after it has said what is wrong. */
int mount_find(const char *given, char **ret_path);
/* True for /dev/fd/N: the caller mounted, and will unmount. */
bool mount_is_foreign(const char *path);

/* Makes front->session, which SIGINT, SIGTERM and SIGHUP end, and mounts it at path (from mount_find), after
 * detaching dead mounts there. Returns an exit code after it has said what is wrong. */
int mount_session(struct front *front, const struct options *options, const char *path);
/* Unmounts if need be, and frees the session. */
void mount_end(struct front *front);

/* 0, or -1 with errno: EBUSY when it is in use and not lazy. */
int mount_detach(const char *path, bool lazy);

/* Sets the read-ahead of the mounted device as options want it, if it is permitted. */
void mount_readahead(dev_t device, const struct options *options);

#endif
