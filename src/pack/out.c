/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/out.h"

#include "base/ovf.h"
#include "hash/fnv1a.h"
#include "pack/behind.h"
#include "pack/fdio.h"
#include "pack/replace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 4096                          /* of what goes around the page cache */
#define BUFFER_BYTES (OUT_ROOM_MAX + ALIGN) /* a whole room behind what is left of a page */

struct out {
    struct replace *replace;
    char *path;
    const struct ckpt_write_options *options;
    uint64_t total;
    uint64_t flushed; /* bytes that left the buffer */
    size_t used;      /* bytes in the buffer */
    size_t digested;  /* of these, counted in digest already */
    uint64_t digest;
    bool digesting;
    uint8_t *buffer;       /* that is filled */
    uint8_t *other;        /* that may be on its way to the disk; NULL until the first one was full */
    struct behind *behind; /* likewise */
};

int out_stop(const struct ckpt_write_options *options, struct ckpt_err *err) {
    const struct ckpt_cancel *cancel = options ? options->cancel : NULL;
    return cancel && cancel->asked(cancel->arg) ? err_set(err, CKPT_E_INTR, "stopped when asked to") : 0;
}

void out_tell(const struct ckpt_write_options *options, uint64_t done, uint64_t total) {
    const struct ckpt_progress *progress = options ? options->progress : NULL;
    if (progress && progress->tell)
        progress->tell(progress->arg, done, total);
}

static void out_free(struct out *out) {
    behind_free(out->behind);
    free(out->other);
    free(out->buffer);
    free(out->path);
    free(out);
}

void out_abandon(struct out *out) {
    if (!out)
        return;
    behind_free(out->behind); /* before its file is closed */
    out->behind = NULL;
    replace_abandon(out->replace);
    out_free(out);
}

int out_begin(const char *path, uint64_t total, const struct ckpt_write_options *options,
    struct out **ret_out, struct ckpt_err *err) {
    struct out *out = calloc(1, sizeof *out);
    if (!out)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    out->total = total;
    out->options = options;
    out->path = strdup(path);
    out->buffer = aligned_alloc(ALIGN, BUFFER_BYTES);
    int rc = out->path && out->buffer ? replace_begin(path, &out->replace, err)
                                      : err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    if (rc)
        out_abandon(out);
    else
        *ret_out = out;
    return rc;
}

uint64_t out_at(const struct out *out) {
    return out->flushed + out->used;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static int write_at(struct out *out, uint64_t off, const uint8_t *bytes, size_t len, struct ckpt_err *err) {
    return fdio_write(replace_fd(out->replace), out->path, off, bytes, len, err);
}

/* Whole buffers are hashed at once: the kernels of the hash are much faster on long runs. */
static void digest_buffer(struct out *out) {
    if (out->digesting)
        out->digest = fnv1a64(out->digest, out->buffer + out->digested, out->used - out->digested);
    out->digested = out->used;
}

static int begin_behind(struct out *out, struct ckpt_err *err) {
    out->other = aligned_alloc(ALIGN, BUFFER_BYTES);
    if (!out->other)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", out->path);
    return behind_new(replace_fd(out->replace), out->path, out->total, &out->behind, err);
}

/* Whole pages are written while the other buffer is filled, which starts with the rest. */
static int hand_over(struct out *out, struct ckpt_err *err) {
    size_t whole = out->used / ALIGN * ALIGN;
    int rc = out->behind ? 0 : begin_behind(out, err);
    if (!rc)
        rc = behind_write(out->behind, out->flushed, out->buffer, whole, err);
    if (rc)
        return rc;
    uint8_t *full = out->buffer;
    out->buffer = out->other;
    out->other = full;
    out->used = out->digested = out->used - whole;
    memcpy(out->buffer, full + whole, out->used);
    out->flushed += whole;
    out_tell(out->options, out->flushed, out->total);
    return 0;
}

static int make_room(struct out *out, struct ckpt_err *err) {
    digest_buffer(out);
    int rc = out_stop(out->options, err);
    return rc ? rc : hand_over(out, err);
}

/* All of it, to the last byte. */
static int flush(struct out *out, struct ckpt_err *err) {
    digest_buffer(out);
    int rc = out_stop(out->options, err);
    if (!rc && out->behind)
        rc = behind_wait(out->behind, err);
    if (!rc)
        rc = write_at(out, out->flushed, out->buffer, out->used, err);
    if (rc)
        return rc;
    out->flushed += out->used;
    out->used = out->digested = 0;
    out_tell(out->options, out->flushed, out->total);
    return 0;
}

int out_room(struct out *out, size_t len, uint8_t **ret_room, struct ckpt_err *err) {
    int rc = len > BUFFER_BYTES - out->used ? make_room(out, err) : 0;
    if (!rc)
        *ret_room = out->buffer + out->used;
    return rc;
}

int out_put_room(struct out *out, size_t len, struct ckpt_err *err) {
    out->used += len;
    return out->used == BUFFER_BYTES ? make_room(out, err) : 0;
}

/* Room for a piece of what is left: as much of `len` as the buffer has place for, but at least a byte. */
static int room_for(
    struct out *out, uint64_t len, uint8_t **ret_room, size_t *ret_len, struct ckpt_err *err) {
    size_t piece = (size_t)ovf_min(len, BUFFER_BYTES - out->used); /* never a full buffer: it is flushed */
    *ret_len = piece;
    return out_room(out, piece, ret_room, err);
}

int out_put(struct out *out, const void *bytes, size_t len, struct ckpt_err *err) {
    const uint8_t *at = bytes;
    uint8_t *room;
    size_t piece;
    int rc = 0;
    for (; !rc && len; at += piece, len -= piece) {
        rc = room_for(out, len, &room, &piece, err);
        if (rc)
            return rc;
        memcpy(room, at, piece);
        rc = out_put_room(out, piece, err);
    }
    return rc;
}

int out_zeros(struct out *out, uint64_t len, struct ckpt_err *err) {
    uint8_t *room;
    size_t piece;
    int rc = 0;
    for (; !rc && len; len -= piece) {
        rc = room_for(out, len, &room, &piece, err);
        if (rc)
            return rc;
        memset(room, 0, piece);
        rc = out_put_room(out, piece, err);
    }
    return rc;
}

int out_copy(struct out *out, struct source *source, uint64_t off, uint64_t len, struct ckpt_err *err) {
    uint8_t *room;
    size_t piece;
    int rc = 0;
    for (; !rc && len; off += piece, len -= piece) {
        rc = room_for(out, len, &room, &piece, err);
        if (!rc)
            rc = source_read(source, off, room, piece, err);
        if (rc)
            return rc;
        rc = out_put_room(out, piece, err);
    }
    return rc;
}

int out_patch(struct out *out, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err) {
    if (!ovf_inside(off, len, out_at(out)))
        return err_set(err, CKPT_E_INVAL,
            "%s: patch of %zu bytes at offset %" PRIu64 " past the %" PRIu64 " written", out->path, len, off,
            out_at(out));
    int rc = flush(out, err);
    return rc ? rc : write_at(out, off, bytes, len, err);
}

/* ---- the digest of a stretch --------------------------------------------------------------------------- */

int out_digest_begin(struct out *out, struct ckpt_err *err) {
    if (out->digesting)
        return err_set(err, CKPT_E_INVAL, "%s: a digest within a digest", out->path);
    out->digested = out->used;
    out->digest = FNV1A64_START;
    out->digesting = true;
    return 0;
}

int out_digest_end(struct out *out, uint64_t *ret_fnv1a64, struct ckpt_err *err) {
    if (!out->digesting)
        return err_set(err, CKPT_E_INVAL, "%s: no digest was begun", out->path);
    digest_buffer(out);
    out->digesting = false;
    *ret_fnv1a64 = out->digest;
    return 0;
}

int out_commit(struct out *out, struct ckpt_err *err) {
    int rc = flush(out, err);
    if (!rc && out->total && out->flushed != out->total)
        rc = err_set(err, CKPT_E_INVAL, "%s: %" PRIu64 " bytes written, %" PRIu64 " promised", out->path,
            out->flushed, out->total);
    if (rc) {
        out_abandon(out);
        return rc;
    }
    behind_free(out->behind); /* before its file is closed */
    out->behind = NULL;
    rc = replace_commit(out->replace, err);
    out_free(out);
    return rc;
}
