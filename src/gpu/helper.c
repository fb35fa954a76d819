/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ckptfs-gpu: the process that has to do with the CUDA driver, so that the daemon has not. It answers one
 * request after another (doc/gpu-protocol.md) and ends with the socket, which ckptfs holds the other end of.
 */
#include "gpu/helper_load.h"
#include "gpu/helper_store.h"
#include "gpu/wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct helper {
    struct device device;
    struct pool pool;
    struct load load;
    bool greeted;
};

/* ---- requests ---------------------------------------------------------------------------------------- */

static int greet(struct helper *helper, const struct gpu_hello *hello, int memfd, struct gpu_msg *ret_reply,
    struct ckpt_err *err) {
    struct gpu_msg reply = {.type = GPU_DEVICE};
    if (helper->greeted)
        return err_os(err, EINVAL, "a second hello");
    int rc = device_open(&helper->device, hello, memfd, &reply.u.device, err);
    if (rc)
        return rc;
    helper->greeted = true;
    helper->pool.device = &helper->device;
    helper->load.pool = &helper->pool;
    *ret_reply = reply;
    return 0;
}

static int release(struct helper *helper, uint64_t id, struct gpu_msg *ret_reply, struct ckpt_err *err) {
    uint64_t given;
    if (!load_drop(&helper->load, id, &given)) {
        struct place *place = pool_find(&helper->pool, id);
        if (!place)
            return err_os(err, EINVAL, "there is no tensor %llu", (unsigned long long)id);
        given = pool_give(&helper->pool, place);
    }
    *ret_reply = (struct gpu_msg){.type = GPU_RELEASED, .u.released = {.id = id, .given = given}};
    return 0;
}

static int count_memory(struct helper *helper, struct gpu_msg *ret_reply, struct ckpt_err *err) {
    struct gpu_msg reply = {.type = GPU_MEMORY, .u.memory = {.taken = helper->pool.taken}};
    int rc = device_memory(&helper->device, &reply.u.memory.free, &reply.u.memory.total, err);
    if (!rc)
        *ret_reply = reply;
    return rc;
}

/* What is being loaded is not the client's to touch. */
static int touch(
    struct helper *helper, const struct gpu_msg *request, struct gpu_msg *ret_reply, struct ckpt_err *err) {
    const struct gpu_fill *move = &request->u.write; /* or read */
    if (helper->load.place && helper->load.want.id == move->id)
        return err_os(err, EINVAL, "tensor %llu is being loaded", (unsigned long long)move->id);
    return request->type == GPU_WRITE ? store_write(&helper->pool, move, ret_reply, err)
                                      : store_read(&helper->pool, move, ret_reply, err);
}

/* fd: the window with a hello, else -1. */
static int answer(struct helper *helper, const struct gpu_msg *request, int fd, struct gpu_msg *ret_reply,
    int *ret_fd, struct ckpt_err *err) {
    if (request->type == GPU_HELLO)
        return greet(helper, &request->u.hello, fd, ret_reply, err);
    if (!helper->greeted)
        return err_os(err, EINVAL, "request %u before the hello", (unsigned)request->type);
    switch (request->type) {
    case GPU_BEGIN:
        return load_begin(&helper->load, &request->u.begin, ret_reply, err);
    case GPU_FILL:
        return load_fill(&helper->load, &request->u.fill, ret_reply, err);
    case GPU_END:
        return load_end(&helper->load, request->u.end.id, ret_reply, ret_fd, err);
    case GPU_RELEASE:
        return release(helper, request->u.release.id, ret_reply, err);
    case GPU_INFO:
        return count_memory(helper, ret_reply, err);
    case GPU_MAKE:
        return store_make(&helper->pool, &request->u.make, ret_reply, ret_fd, err);
    case GPU_WRITE:
    case GPU_READ:
        return touch(helper, request, ret_reply, err);
    default:
        return err_os(err, EINVAL, "message %u is no request", (unsigned)request->type);
    }
}

/* ---- the conversation -------------------------------------------------------------------------------- */

static uint64_t id_of(const struct gpu_msg *request) {
    switch (request->type) {
    case GPU_BEGIN:
        return request->u.begin.id;
    case GPU_FILL:
        return request->u.fill.id;
    case GPU_END:
        return request->u.end.id;
    case GPU_RELEASE:
        return request->u.release.id;
    case GPU_MAKE:
        return request->u.make.id;
    case GPU_WRITE:
        return request->u.write.id;
    case GPU_READ:
        return request->u.read.id;
    default:
        return 0;
    }
}

static struct gpu_msg complaint(uint64_t id, const struct ckpt_err *err) {
    struct gpu_msg reply = {.type = GPU_ERROR, .u.error = {.id = id}};
    reply.u.error.os_errno = (uint32_t)(err->os_errno ? err->os_errno : EINVAL);
    snprintf(reply.u.error.text, sizeof reply.u.error.text, "%.*s", GPU_TEXT_MAX, err->msg);
    return reply;
}

/* False: the conversation is over. */
static bool serve_one(struct helper *helper, int sock) {
    struct ckpt_err err = {0};
    struct gpu_msg request = {0}, reply = {0};
    int fd = -1, out = -1;
    int rc = gpu_wire_recv(sock, &request, &fd, -1, &err);
    if (rc && err.os_errno == EPIPE)
        return false;
    bool sound = !rc; /* garbage gets an answer, too, and the last one */
    if (sound)
        rc = answer(helper, &request, fd, &reply, &out, &err);
    if (rc)
        reply = complaint(id_of(&request), &err);
    rc = gpu_wire_send(sock, &reply, out, -1, &err);
    if (fd >= 0)
        close(fd);
    if (out >= 0)
        close(out);
    return !rc && sound && helper->greeted && !helper->device.driver.broken;
}

/* A call of the driver may hang while the daemon ends: this thread ends the process all the same, and the
 * system frees what it had on the device. */
static void *watch_other_end(void *arg) {
    struct pollfd at = {.fd = *(int *)arg, .events = POLLRDHUP};
    while (poll(&at, 1, -1) < 0 && errno == EINTR)
        ;
    _exit(EXIT_SUCCESS);
}

static bool is_socket(int fd) {
    int type = 0;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

/* Nothing of the daemon's stays open here: not the mount, not the checkpoint. */
static void settle_in(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    (void)syscall(SYS_close_range, GPU_SOCKET_FD + 1, ~0u, 0);
    if (chdir("/"))
        perror("ckptfs-gpu: /"); /* then it keeps the folder it was started in busy, no more */
}

int main(int argc, char **argv) {
    static struct helper helper;
    static int sock = GPU_SOCKET_FD;
    pthread_t watcher;
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        printf("ckptfs-gpu %s, protocol %d\n", CKPT_VERSION, GPU_VERSION);
        return EXIT_SUCCESS;
    }
    if (argc != 1 || !is_socket(sock)) {
        fprintf(stderr, "%s is started by ckptfs, with a socket as descriptor %d\n", argv[0], sock);
        return EXIT_FAILURE;
    }
    settle_in();
    int rc = pthread_create(&watcher, NULL, watch_other_end, &sock);
    if (rc) {
        fprintf(stderr, "%s: a thread: %s\n", argv[0], strerror(rc));
        return EXIT_FAILURE;
    }
    while (serve_one(&helper, sock))
        ;
    _exit(EXIT_SUCCESS); /* not through the driver's exit handlers, which may hang */
}
