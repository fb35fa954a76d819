/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over the socket pair (AF_UNIX, SOCK_SEQPACKET): one frame a packet, at most one descriptor with
 * it. Both ends use it; a socket belongs to one thread at a time.
 */
#ifndef GPU_WIRE_H
#define GPU_WIRE_H

#include "gpu/proto.h"

/* A pair of connected sockets, close-on-exec, in this process and in the helper's. */
int gpu_wire_pair(int ret_fds[2], struct ckpt_err *err);

/*
 * Sends msg, with descriptor fd unless it is -1 (it stays open here). timeout_ms -1: waits for ever. Errors:
 * IO; os_errno is EPIPE when the other end is gone, ETIMEDOUT when it took nothing for so long.
 */
int gpu_wire_send(int sock, const struct gpu_msg *msg, int fd, int timeout_ms, struct ckpt_err *err);

/*
 * Receives the next message. *ret_fd is -1 or a descriptor that is now the caller's, close-on-exec: only
 * GPU_HELLO and a GPU_READY to share by descriptor may and must bring one. Errors: IO (os_errno EPIPE: the
 * other end is gone; ETIMEDOUT: nothing came for so long), CORRUPT, UNSUPPORTED.
 */
int gpu_wire_recv(int sock, struct gpu_msg *ret_msg, int *ret_fd, int timeout_ms, struct ckpt_err *err);

#endif
