/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes of an open file. */
#ifndef PACK_FDIO_H
#define PACK_FDIO_H

#include "base/err.h"

/* Up to len bytes at off: fewer only at the end of the file. `name` is for messages. Errors: IO. */
int fdio_read(
    int fd, const char *name, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err);
/* All of them or an error: IO. */
int fdio_write(int fd, const char *name, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err);

#endif
