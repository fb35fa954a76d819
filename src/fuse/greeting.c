/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/greeting.h"

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#define DIRECT_ALLOW_MMAP (1u << 4) /* FUSE_DIRECT_IO_ALLOW_MMAP, Linux 6.6: bit 36 of both flag words */

_Static_assert(sizeof(struct fuse_init_out) == 64, "the answer since protocol 7.23");

struct asked {
    struct fuse_in_header head;
    struct fuse_init_in init;
};

/* The kernel greets once, before anything else, and waits for the answer. */
static void listen_to(struct greeting *greeting, const struct asked *asked, size_t len) {
    if (len < sizeof *asked || asked->head.opcode != FUSE_INIT)
        return;
    if ((asked->init.flags & FUSE_INIT_EXT) && (asked->init.flags2 & DIRECT_ALLOW_MMAP))
        greeting->number = asked->head.unique;
    atomic_store(&greeting->heard, true);
}

static ssize_t read_request(int fd, void *buf, size_t size, void *arg) {
    struct front *front = arg;
    ssize_t len = read(fd, buf, size);
    if (len > 0 && !atomic_load_explicit(&front->greeting.heard, memory_order_relaxed))
        listen_to(&front->greeting, buf, (size_t)len);
    return len;
}

static bool is_answer(const struct greeting *greeting, const struct iovec *parts, int count) {
    if (count != 2 || parts[0].iov_len != sizeof(struct fuse_out_header) ||
        parts[1].iov_len != sizeof(struct fuse_init_out))
        return false;
    const struct fuse_out_header *head = parts[0].iov_base;
    const struct fuse_init_out *init = parts[1].iov_base;
    return head->unique == greeting->number && head->error == 0 && init->major == FUSE_KERNEL_VERSION;
}

static ssize_t write_reply(int fd, struct iovec *parts, int count, void *arg) {
    struct greeting *greeting = &((struct front *)arg)->greeting;
    if (greeting->number && !greeting->direct && is_answer(greeting, parts, count)) {
        struct fuse_init_out *init = parts[1].iov_base;
        init->flags |= FUSE_INIT_EXT;
        init->flags2 |= DIRECT_ALLOW_MMAP;
        greeting->direct = true;
    }
    return writev(fd, parts, count);
}

int greeting_ask_direct(struct front *front) {
    static const struct fuse_custom_io io = {.writev = write_reply, .read = read_request};
    return fuse_session_custom_io(front->session, &io, fuse_session_fd(front->session));
}
