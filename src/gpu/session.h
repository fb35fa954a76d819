/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conversation with a helper: its process, the window of memory that both have, and requests with their
 * replies, each within its deadline. After any failure to talk the session is `broken` and can only be ended.
 * Threads: one at a time.
 */
#ifndef GPU_SESSION_H
#define GPU_SESSION_H

#include "gpu/process.h"
#include "gpu/proto.h"

#define WINDOW_HALF ((uint32_t)8 << 20)

struct session {
    struct process process;
    uint8_t *window; /* two halves of WINDOW_HALF bytes; NULL before session_greet */
    int reply_ms;
    struct gpu_device device; /* what the helper said of it */
    bool broken;
};

/* The process, and no more. Errors: those of process_start. */
int session_start(const char *program, int reply_ms, struct session *ret_session, struct ckpt_err *err);
/* Hands over the window and asks for the device. Errors: GPU (what the helper said; else ETIMEDOUT, EIO), IO,
 * NOMEM. The session is then to be ended. */
int session_greet(struct session *session, const char *selector, int start_ms, struct ckpt_err *err);
void session_end(struct session *session, char how[64]); /* a zeroed one is fine; how as process_end */

/* Sends a request. Errors: GPU (EIO, ETIMEDOUT). */
int session_tell(struct session *session, const struct gpu_msg *request, struct ckpt_err *err);
/*
 * Receives the next reply, which must be of that type and for that id. Errors: GPU: the errno and the text of
 * an ERROR; else (ETIMEDOUT, EIO) the session is broken. *ret_fd is set as gpu_wire_recv does; NULL: none is
 * expected.
 */
int session_hear(struct session *session, enum gpu_type type, uint64_t id, struct gpu_msg *ret_reply,
    int *ret_fd, struct ckpt_err *err);
/* Both, one after the other. */
int session_ask(struct session *session, const struct gpu_msg *request, enum gpu_type type, uint64_t id,
    struct gpu_msg *ret_reply, int *ret_fd, struct ckpt_err *err);

/* Something in a reply makes no sense. */
int session_break(struct session *session, struct ckpt_err *err, const char *what);

#endif
