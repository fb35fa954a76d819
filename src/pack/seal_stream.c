/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/seal_stream.h"

#include "base/ovf.h"
#include "base/tick.h"
#include "pack/fdio.h"
#include "pack/out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 20) /* as much as a pipe can hold */

int seal_stream_begin(
    struct seal_stream *stream, int from, int file, const char *name, uint64_t base, struct ckpt_err *err) {
    uint8_t *buffer = malloc(BUFFER_BYTES);
    if (!buffer)
        return err_set(err, CKPT_E_NOMEM, "no memory for a buffer of %zu bytes", BUFFER_BYTES);
    *stream = (struct seal_stream){from, file, name, base, 0, buffer};
    return 0;
}

void seal_stream_end(struct seal_stream *stream) {
    free(stream->buffer);
    stream->buffer = NULL;
}

/* ---- as it comes --------------------------------------------------------------------------------------- */

/* Bytes that came; 0: none yet, or with *ret_ended never again. */
static int receive(struct seal_stream *stream, size_t *ret_len, bool *ret_ended, struct ckpt_err *err) {
    struct pollfd wait = {.fd = stream->from, .events = POLLIN};
    *ret_len = 0;
    *ret_ended = false;
    if (poll(&wait, 1, TICK_MS) == 0)
        return 0;
    ssize_t got = read(stream->from, stream->buffer, BUFFER_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got < 0)
        return err_os(err, errno, "payload: read after %llu bytes", (unsigned long long)stream->bytes);
    *ret_len = (size_t)got;
    *ret_ended = got == 0;
    return 0;
}

int seal_stream_more(struct seal_stream *stream, uint64_t *ret_bytes, bool *ret_ended, struct ckpt_err *err) {
    size_t len;
    bool ended;
    int rc = receive(stream, &len, &ended, err);
    if (!rc && len)
        rc = fdio_write(stream->file, stream->name, stream->base + stream->bytes, stream->buffer, len, err);
    if (rc)
        return rc;
    stream->bytes += len;
    *ret_bytes = stream->bytes;
    *ret_ended = ended;
    return 0;
}

/* ---- room for a longer header -------------------------------------------------------------------------- */

static int move_piece(
    struct seal_stream *stream, uint64_t base, uint64_t off, size_t len, struct ckpt_err *err) {
    size_t got;
    int rc = fdio_read(stream->file, stream->name, stream->base + off, stream->buffer, len, &got, err);
    if (!rc && got < len)
        rc = err_os(err, EIO, "%s: bytes that were written are not there", stream->name);
    return rc ? rc : fdio_write(stream->file, stream->name, base + off, stream->buffer, len, err);
}

/* From its end, so that nothing is written over before it was read. */
static int move_all(struct seal_stream *stream, uint64_t base, const struct ckpt_write_options *options,
    struct ckpt_err *err) {
    int rc = 0;
    for (uint64_t left = stream->bytes; !rc && left;) {
        size_t len = (size_t)ovf_min(left, BUFFER_BYTES);
        left -= len;
        rc = out_stop(options, err);
        if (!rc)
            rc = move_piece(stream, base, left, len, err);
    }
    return rc;
}

int seal_stream_move(struct seal_stream *stream, uint64_t base, const struct ckpt_write_options *options,
    struct ckpt_err *err) {
    uint64_t room = base - stream->base;
    if (room && stream->bytes &&
        fallocate(stream->file, FALLOC_FL_INSERT_RANGE, (off_t)stream->base, (off_t)room) != 0) {
        int rc = move_all(stream, base, options, err);
        if (rc)
            return rc;
    }
    stream->base = base;
    return 0;
}
