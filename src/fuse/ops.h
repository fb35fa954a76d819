/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE operations: a thin translation of ckptfs.h. Each answers its request exactly once. */
#ifndef FUSE_OPS_H
#define FUSE_OPS_H

#include "fuse/front.h"

/* The table for a session with `front` as userdata. */
struct fuse_lowlevel_ops ops_table(const struct front *front);

/* Closes what is still open when the session has ended. */
void ops_close_files(struct front *front);

/* The groups that ops_table puts together. */
void ops_add_files(struct fuse_lowlevel_ops *ops);
void ops_add_dirs(struct fuse_lowlevel_ops *ops);
void ops_add_xattrs(struct fuse_lowlevel_ops *ops);
void ops_add_refusals(struct fuse_lowlevel_ops *ops);

#endif
