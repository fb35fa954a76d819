/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/fdio.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

int fdio_read(
    int fd, const char *name, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    size_t done = 0;
    while (done < len) {
        ssize_t got = pread(fd, (char *)buf + done, len - done, (off_t)(off + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_os(
                err, errno, "%s: read of %zu bytes at offset %" PRIu64, name, len - done, off + done);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *ret_len = done;
    return 0;
}

int fdio_write(int fd, const char *name, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err) {
    for (size_t done = 0; done < len;) {
        ssize_t put = pwrite(fd, (const char *)bytes + done, len - done, (off_t)(off + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return err_os(err, put < 0 ? errno : EIO, "%s: write of %zu bytes at offset %" PRIu64, name,
                len - done, off + done);
        done += (size_t)put;
    }
    return 0;
}
