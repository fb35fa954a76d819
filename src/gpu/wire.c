/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Room for one descriptor, and for a second one that is not allowed, so that it is seen and closed. */
#define DESCRIPTORS 2

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
};

int gpu_wire_pair(int ret_fds[2], struct ckpt_err *err) {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
        return err_os(err, errno, "a socket pair for the GPU helper");
    memcpy(ret_fds, fds, sizeof fds);
    return 0;
}

/* ---- waiting ----------------------------------------------------------------------------------------- */

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until the socket is ready for `events` or its other end is gone; signals do not move the deadline. */
static int wait_for(int sock, short events, int timeout_ms, struct ckpt_err *err) {
    int64_t until = now_ms() + timeout_ms;
    for (;;) {
        int64_t left = timeout_ms < 0 ? -1 : until - now_ms();
        struct pollfd at = {.fd = sock, .events = events};
        int ready = poll(&at, 1, timeout_ms < 0 ? -1 : left > 0 ? (int)left : 0);
        if (ready > 0)
            return 0;
        if (ready == 0)
            return err_os(err, ETIMEDOUT, "GPU helper protocol: nothing for %d ms", timeout_ms);
        if (errno != EINTR)
            return err_os(err, errno, "GPU helper protocol: poll");
    }
}

static int gone(struct ckpt_err *err) {
    return err_os(err, EPIPE, "GPU helper protocol: the other end is gone");
}

/* ---- sending ----------------------------------------------------------------------------------------- */

static void attach(struct msghdr *packet, union control *control, int fd) {
    packet->msg_control = control->bytes;
    packet->msg_controllen = CMSG_SPACE(sizeof fd);
    struct cmsghdr *head = CMSG_FIRSTHDR(packet);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
}

int gpu_wire_send(int sock, const struct gpu_msg *msg, int fd, int timeout_ms, struct ckpt_err *err) {
    uint8_t frame[GPU_FRAME_MAX];
    union control control = {0};
    struct iovec part = {.iov_base = frame, .iov_len = gpu_encode(msg, frame)};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0)
        attach(&packet, &control, fd);
    for (;;) {
        if (sendmsg(sock, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
            return 0;
        if (errno == EPIPE || errno == ECONNRESET)
            return gone(err);
        if (errno != EAGAIN && errno != EINTR)
            return err_os(err, errno, "GPU helper protocol: send");
        int rc = wait_for(sock, POLLOUT, timeout_ms, err);
        if (rc)
            return rc;
    }
}

/* ---- receiving --------------------------------------------------------------------------------------- */

/* How many descriptors came; fds has room for as many as the kernel delivers into `control`. */
static int detach(struct msghdr *packet, int fds[DESCRIPTORS]) {
    int count = 0;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(packet); head; head = CMSG_NXTHDR(packet, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t bytes = head->cmsg_len - CMSG_LEN(0);
        memcpy(fds + count, CMSG_DATA(head), bytes);
        count += (int)(bytes / sizeof *fds);
    }
    return count;
}

static bool brings_descriptor(const struct gpu_msg *msg) {
    return msg->type == GPU_HELLO || (msg->type == GPU_READY && msg->u.ready.share == GPU_SHARE_FD);
}

static int judge(
    const uint8_t *frame, size_t len, int flags, int count, struct gpu_msg *ret_msg, struct ckpt_err *err) {
    struct gpu_msg msg;
    if (flags & (MSG_TRUNC | MSG_CTRUNC))
        return err_set(
            err, CKPT_E_CORRUPT, "GPU helper protocol: a frame of more than %d bytes", GPU_FRAME_MAX);
    int rc = gpu_decode(frame, len, &msg, err);
    if (rc)
        return rc;
    if (count != brings_descriptor(&msg))
        return err_set(err, CKPT_E_CORRUPT, "GPU helper protocol: type %u came with %d descriptors",
            (unsigned)msg.type, count);
    *ret_msg = msg;
    return 0;
}

static ssize_t receive(int sock, struct msghdr *packet) {
    ssize_t len;
    do
        len = recvmsg(sock, packet, MSG_CMSG_CLOEXEC);
    while (len < 0 && errno == EINTR);
    return len;
}

int gpu_wire_recv(int sock, struct gpu_msg *ret_msg, int *ret_fd, int timeout_ms, struct ckpt_err *err) {
    uint8_t frame[GPU_FRAME_MAX];
    union control control = {0};
    struct iovec part = {.iov_base = frame, .iov_len = sizeof frame};
    struct msghdr packet = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes};
    int fds[DESCRIPTORS];
    int rc = wait_for(sock, POLLIN, timeout_ms, err);
    if (rc)
        return rc;
    ssize_t len = receive(sock, &packet);
    if (len == 0 || (len < 0 && errno == ECONNRESET))
        return gone(err); /* an empty packet is no frame either */
    if (len < 0)
        return err_os(err, errno, "GPU helper protocol: receive");
    int count = detach(&packet, fds);
    rc = judge(frame, (size_t)len, packet.msg_flags, count, ret_msg, err);
    for (int i = 0; rc && i < count; i++)
        close(fds[i]);
    if (!rc)
        *ret_fd = count ? fds[0] : -1;
    return rc;
}
