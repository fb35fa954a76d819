/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/session.h"

#include "gpu/fault.h"
#include "gpu/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define WINDOW_BYTES (2 * (size_t)WINDOW_HALF)

/* ---- requests and replies ---------------------------------------------------------------------------- */

static int talk_failed(struct session *session, struct ckpt_err *err) {
    session->broken = true;
    return gpu_fault_of(err);
}

int session_break(struct session *session, struct ckpt_err *err, const char *what) {
    session->broken = true;
    return gpu_fault(err, EIO, "GPU helper protocol: %s", what);
}

int session_tell(struct session *session, const struct gpu_msg *request, struct ckpt_err *err) {
    int rc = gpu_wire_send(session->process.sock, request, -1, session->reply_ms, err);
    return rc ? talk_failed(session, err) : 0;
}

static uint64_t id_of(const struct gpu_msg *msg) {
    switch (msg->type) {
    case GPU_ALLOCATED:
        return msg->u.allocated.id;
    case GPU_FILLED:
        return msg->u.filled.id;
    case GPU_READY:
        return msg->u.ready.id;
    case GPU_RELEASED:
        return msg->u.released.id;
    case GPU_COPIED:
        return msg->u.copied.id;
    case GPU_ERROR:
        return msg->u.error.id;
    default:
        return 0;
    }
}

/* What an open may fail with: kernels that do not load, too, are a device that fails. */
static int errno_of(const struct gpu_error *error) {
    return error->os_errno == ENODEV || error->os_errno == ENOMEM ? (int)error->os_errno : EIO;
}

/* An error that belongs to no request ends the conversation, as one that blames us does. */
static int told_error(
    struct session *session, const struct gpu_error *error, uint64_t id, struct ckpt_err *err) {
    session->broken = session->broken || error->id != id || error->os_errno == EINVAL;
    return gpu_fault(err, errno_of(error), "%s", error->text);
}

static int judge(struct session *session, const struct gpu_msg *reply, enum gpu_type type, uint64_t id,
    struct ckpt_err *err) {
    char text[64];
    if (reply->type == GPU_ERROR)
        return told_error(session, &reply->u.error, id, err);
    if (reply->type == type && id_of(reply) == id)
        return 0;
    snprintf(text, sizeof text, "reply %u where %u was due", (unsigned)reply->type, (unsigned)type);
    return session_break(session, err, text);
}

static int hear(struct session *session, enum gpu_type type, uint64_t id, int timeout_ms,
    struct gpu_msg *ret_reply, int *ret_fd, struct ckpt_err *err) {
    struct gpu_msg reply;
    int fd = -1;
    int rc = gpu_wire_recv(session->process.sock, &reply, &fd, timeout_ms, err);
    if (rc)
        return talk_failed(session, err);
    rc = judge(session, &reply, type, id, err);
    if (!rc && fd >= 0 && !ret_fd)
        rc = session_break(session, err, "a descriptor that nobody asked for");
    if (rc) {
        if (fd >= 0)
            close(fd);
        return rc;
    }
    *ret_reply = reply;
    if (ret_fd)
        *ret_fd = fd;
    return 0;
}

int session_hear(struct session *session, enum gpu_type type, uint64_t id, struct gpu_msg *ret_reply,
    int *ret_fd, struct ckpt_err *err) {
    return hear(session, type, id, session->reply_ms, ret_reply, ret_fd, err);
}

int session_ask(struct session *session, const struct gpu_msg *request, enum gpu_type type, uint64_t id,
    struct gpu_msg *ret_reply, int *ret_fd, struct ckpt_err *err) {
    int rc = session_tell(session, request, err);
    return rc ? rc : session_hear(session, type, id, ret_reply, ret_fd, err);
}

/* ---- beginning and end ------------------------------------------------------------------------------- */

int session_start(const char *program, int reply_ms, struct session *ret_session, struct ckpt_err *err) {
    struct session session = {.reply_ms = reply_ms};
    int rc = process_start(program, &session.process, err);
    if (!rc)
        *ret_session = session;
    return rc;
}

/* Neither side can change its size below the other. */
static int window_fd(struct ckpt_err *err) {
    int fd = memfd_create("ckptfs-gpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_os(err, errno, "memory for the GPU helper");
    if (ftruncate(fd, (off_t)WINDOW_BYTES) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        int failed = errno;
        close(fd);
        return err_os(err, failed, "%zu bytes of memory for the GPU helper", WINDOW_BYTES);
    }
    return fd;
}

static int greet(
    struct session *session, const char *selector, int window, int start_ms, struct ckpt_err *err) {
    struct gpu_msg hello = {.type = GPU_HELLO, .u.hello.half = WINDOW_HALF}, reply;
    snprintf(hello.u.hello.selector, sizeof hello.u.hello.selector, "%s", selector);
    int rc = gpu_wire_send(session->process.sock, &hello, window, session->reply_ms, err);
    if (rc)
        return talk_failed(session, err);
    rc = hear(session, GPU_DEVICE, 0, start_ms, &reply, NULL, err);
    if (!rc)
        session->device = reply.u.device;
    return rc;
}

int session_greet(struct session *session, const char *selector, int start_ms, struct ckpt_err *err) {
    int fd = window_fd(err);
    if (fd < 0)
        return fd;
    void *window = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int rc;
    if (window == MAP_FAILED) {
        rc = err_os(err, errno, "map %zu bytes for the GPU helper", WINDOW_BYTES);
    } else {
        session->window = window;
        rc = greet(session, selector, fd, start_ms, err);
    }
    close(fd);
    return rc;
}

void session_end(struct session *session, char how[64]) {
    process_end(&session->process, how);
    if (session->window)
        munmap(session->window, WINDOW_BYTES);
    *session = (struct session){0};
}
