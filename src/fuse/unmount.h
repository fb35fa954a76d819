/* SPDX-License-Identifier: Apache-2.0 */
/* ckptfs -u: unmounting by hand. */
#ifndef FUSE_UNMOUNT_H
#define FUSE_UNMOUNT_H

/* Unmounts what is mounted at `given`; when it is busy, says who holds it and detaches it. Returns an exit
 * code after it has said what is wrong. */
int unmount_by_hand(const char *given);

#endif
