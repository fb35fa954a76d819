/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/sink.h"

#include "pack/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define ALIGN 4096 /* what places, lengths and memory have to be multiples of, on all disks there are */

static int open_direct(int file) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
}

struct sink sink_open(int file, const char *name, uint64_t base, uint64_t bytes) {
    struct sink sink = {file, open_direct(file), name, base};
    if (sink.direct >= 0 && bytes) /* else writes that make a file longer wait for each other */
        (void)fallocate(file, 0, (off_t)base, (off_t)bytes);
    return sink;
}

void sink_close(struct sink *sink) {
    if (sink->direct >= 0)
        close(sink->direct);
    sink->direct = -1;
}

/* How much went around the cache: what cannot is for the ordinary way. */
static int write_direct(const struct sink *sink, uint64_t off, const void *bytes, size_t len,
    size_t *ret_done, struct ckpt_err *err) {
    *ret_done = 0;
    if (sink->direct < 0 || ((uintptr_t)bytes | (sink->base + off) | len) % ALIGN)
        return 0;
    ssize_t put = pwrite(sink->direct, bytes, len, (off_t)(sink->base + off));
    if (put < 0 && errno != EINVAL && errno != EOPNOTSUPP && errno != EINTR)
        return err_os(
            err, errno, "%s: write of %zu bytes at offset %" PRIu64, sink->name, len, sink->base + off);
    *ret_done = put > 0 ? (size_t)put : 0;
    return 0;
}

int sink_write(const struct sink *sink, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err) {
    size_t done;
    int rc = write_direct(sink, off, bytes, len, &done, err);
    return rc ? rc
              : fdio_write(sink->file, sink->name, sink->base + off + done, (const char *)bytes + done,
                    len - done, err);
}
