/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/seal.h"

#include "format/envelope_layout.h"
#include "pack/fdio.h"
#include "pack/replace.h"
#include "pack/seal_chunks.h"
#include "pack/seal_header.h"
#include "pack/seal_stream.h"
#include "pack/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAYLOAD "payload" /* an open file has no name */

struct sealing {
    const struct seal_plan *plan;
    const struct ckpt_write_options *options;
    const char *to;
    int payload, file;  /* open: what is sealed, and what becomes the target */
    struct stat opened; /* the payload when it was looked at */
    uint64_t start;     /* a regular payload's position */
    uint64_t base;      /* where the payload starts in the file */
    bool arrives;       /* it is read once, in order: a pipe, or a file that does not say how long it is */
    bool known;         /* how long the payload is, or has to be: */
    uint64_t bytes;
    struct seal_header header;
    struct seal_stream stream; /* of a payload that arrives */
    struct sink sink;          /* for one that is there */
};

/* ---- before anything is written ------------------------------------------------------------------------ */

static int refuse_size(uint64_t bytes, uint64_t wanted, struct ckpt_err *err) {
    return err_set(err, CKPT_E_MISMATCH, PAYLOAD ": it has %" PRIu64 " bytes, the contract gives %" PRIu64,
        bytes, wanted);
}

static int look_at_file(struct sealing *sealing, struct ckpt_err *err) {
    off_t at = lseek(sealing->payload, 0, SEEK_CUR);
    if (at < 0)
        return err_os(err, errno, PAYLOAD ": position");
    sealing->start = (uint64_t)at;
    sealing->bytes = at < sealing->opened.st_size ? (uint64_t)(sealing->opened.st_size - at) : 0;
    sealing->known = true;
    const struct seal_plan *plan = sealing->plan;
    if (plan->sized && plan->payload_bytes != sealing->bytes)
        return refuse_size(sealing->bytes, plan->payload_bytes, err);
    return 0;
}

static int look(struct sealing *sealing, struct ckpt_err *err) {
    const struct seal_plan *plan = sealing->plan;
    if (fstat(sealing->payload, &sealing->opened) != 0)
        return err_os(err, errno, PAYLOAD);
    if (S_ISDIR(sealing->opened.st_mode))
        return err_os(err, EISDIR, PAYLOAD);
    /* those of /proc, and others that are made when they are read, say 0 */
    sealing->arrives = !S_ISREG(sealing->opened.st_mode) || sealing->opened.st_size == 0;
    if (!sealing->arrives) {
        int rc = look_at_file(sealing, err);
        if (rc)
            return rc;
    } else if (plan->sized) {
        sealing->known = true;
        sealing->bytes = plan->payload_bytes;
    } else if (!plan->chunk_bytes) {
        return err_set(err, CKPT_E_INVAL, "chunks of 0 bytes for a payload that is not known to be empty");
    }
    return seal_header_bytes(sealing->known ? sealing->bytes : 0, plan->chunk_bytes, &sealing->base, err);
}

/* ---- the payload --------------------------------------------------------------------------------------- */

static int read_file(void *arg, uint64_t off, void *buf, size_t len, struct ckpt_err *err) {
    struct sealing *sealing = arg;
    size_t got;
    int rc = fdio_read(sealing->payload, PAYLOAD, sealing->start + off, buf, len, &got, err);
    if (!rc && got < len)
        rc = err_set(err, CKPT_E_CHANGED, PAYLOAD ": it ended after %" PRIu64 " of %" PRIu64 " bytes",
            off + got, sealing->bytes);
    return rc;
}

static int write_copy(void *arg, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err) {
    struct sealing *sealing = arg;
    return sink_write(&sealing->sink, off, bytes, len, err);
}

static int read_copy(void *arg, uint64_t off, void *buf, size_t len, struct ckpt_err *err) {
    struct sealing *sealing = arg;
    size_t got;
    int rc = fdio_read(sealing->file, sealing->to, sealing->base + off, buf, len, &got, err);
    if (!rc && got < len)
        rc = err_os(err, EIO, "%s: bytes that were written at offset %" PRIu64 " are not there", sealing->to,
            sealing->base + off + got);
    return rc;
}

static int put_digests(
    void *arg, uint64_t first, uint64_t count, const uint8_t (*digests)[32], struct ckpt_err *err) {
    struct sealing *sealing = arg;
    return seal_header_digests(&sealing->header, first, count, digests, err);
}

static int more(void *arg, uint64_t *bytes, bool *ended, struct ckpt_err *err) {
    struct sealing *sealing = arg;
    struct seal_stream *stream = &sealing->stream;
    int rc = seal_stream_more(stream, bytes, ended, err);
    if (rc || !sealing->known)
        return rc;
    if (*bytes > sealing->bytes)
        return err_set(err, CKPT_E_MISMATCH,
            PAYLOAD ": it has %" PRIu64 " bytes or more, the contract gives %" PRIu64, *bytes,
            sealing->bytes);
    if (*ended && *bytes != sealing->bytes)
        return refuse_size(*bytes, sealing->bytes, err);
    return 0;
}

/* A payload that was written to while it was copied is a mixture of two. */
static int unchanged(const struct sealing *sealing, struct ckpt_err *err) {
    const struct stat *before = &sealing->opened;
    struct stat now;
    if (fstat(sealing->payload, &now) != 0)
        return err_os(err, errno, PAYLOAD);
    if (now.st_size != before->st_size || now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != before->st_mtim.tv_nsec)
        return err_set(err, CKPT_E_CHANGED, PAYLOAD ": it was written to meanwhile (%lld bytes, it had %lld)",
            (long long)now.st_size, (long long)before->st_size);
    return 0;
}

static int copy_file(struct sealing *sealing, struct ckpt_err *err) {
    const struct chunks chunks = {.chunk_bytes = sealing->plan->chunk_bytes,
        .bytes = sealing->bytes,
        .read = read_file,
        .write = write_copy,
        .digests = put_digests,
        .arg = sealing};
    sealing->sink = sink_open(sealing->file, sealing->to, sealing->base, sealing->bytes);
    int rc = chunks_run(&chunks, sealing->options, err);
    sink_close(&sealing->sink);
    return rc ? rc : unchanged(sealing, err);
}

/* What arrives is written at once by one thread; the others read and hash what was written. */
static int copy_stream(struct sealing *sealing, struct ckpt_err *err) {
    const struct chunks chunks = {.chunk_bytes = sealing->plan->chunk_bytes,
        .more = more,
        .read = read_copy,
        .digests = put_digests,
        .arg = sealing};
    struct seal_stream *stream = &sealing->stream;
    int rc = seal_stream_begin(stream, sealing->payload, sealing->file, sealing->to, sealing->base, err);
    if (!rc)
        rc = chunks_run(&chunks, sealing->options, err);
    if (!rc)
        rc = seal_header_bytes(stream->bytes, sealing->plan->chunk_bytes, &sealing->base, err);
    if (!rc)
        rc = seal_stream_move(stream, sealing->base, sealing->options, err);
    sealing->bytes = stream->bytes;
    seal_stream_end(stream);
    return rc;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static int write_all(struct sealing *sealing, struct ckpt_err *err) {
    int rc = sealing->arrives ? copy_stream(sealing, err) : copy_file(sealing, err);
    if (!rc)
        rc = seal_header_finish(&sealing->header, sealing->plan, sealing->bytes, err);
    if (!rc)
        rc = fdio_write(
            sealing->file, sealing->to, 0, sealing->header.bytes, (size_t)sealing->header.len, err);
    seal_header_free(&sealing->header);
    return rc;
}

int seal(int payload, const struct seal_plan *plan, const char *to, const struct ckpt_write_options *options,
    struct ckpt_err *err) {
    struct sealing sealing = {.plan = plan, .options = options, .to = to, .payload = payload};
    struct replace *replace;
    int rc = look(&sealing, err);
    if (!rc)
        rc = replace_begin(to, &replace, err);
    if (rc)
        return rc;
    sealing.file = replace_fd(replace);
    rc = write_all(&sealing, err);
    if (!rc)
        return replace_commit(replace, err);
    replace_abandon(replace);
    return rc;
}
