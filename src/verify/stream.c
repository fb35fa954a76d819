/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/stream.h"

#include "base/ovf.h"
#include "hash/hash.h"
#include "verify/pass.h"
#include "verify/span.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 4096 /* kept of each unit: headers are looked at more than once */
#define SCRATCH_BYTES ((size_t)1 << 20)

/* How far a unit has been read. */
struct progress {
    struct hash_state *hash; /* NULL: nothing was read, or all */
    uint64_t done;
    uint8_t *head; /* the first min(done, HEAD_BYTES) bytes; NULL until something was read */
};

struct stream {
    struct source source;
    struct guard *guard;
    struct source *under;
    const struct ckpt_cancel *cancel;
    const struct unit_table *table; /* NULL: the guard serves everything */
    struct progress *units;
    uint8_t *scratch;
};

static struct stream *stream_of(struct source *source) {
    return (struct stream *)source;
}

/* ---- going forward in a unit --------------------------------------------------------------------------- */

static int prepare(struct progress *progress, struct ckpt_err *err) {
    if (progress->head)
        return 0;
    int rc = progress->hash ? 0 : hash_new(HASH_FNV1A64, &progress->hash, err);
    if (rc)
        return rc;
    progress->head = malloc(HEAD_BYTES);
    return progress->head ? 0
                          : err_set(err, CKPT_E_NOMEM, "no memory for a unit's first %d bytes", HEAD_BYTES);
}

static int judge(struct progress *progress, const struct unit *unit, struct ckpt_err *err) {
    uint8_t found[HASH_DIGEST_MAX];
    hash_final(progress->hash, found);
    hash_free(progress->hash);
    progress->hash = NULL;
    return pass_judge(unit, found, err);
}

/* The next len bytes of the unit, which has them. */
static int advance(struct stream *stream, struct progress *progress, const struct unit *unit, void *buf,
    size_t len, struct ckpt_err *err) {
    int rc = prepare(progress, err);
    if (rc)
        return rc;
    if (pass_cancelled(stream->cancel))
        return err_set(err, CKPT_E_INTR, "interrupted");
    rc = source_read(stream->under, unit->at.off + progress->done, buf, len, err);
    if (rc)
        return pass_read_failed(unit, rc, err);
    if (progress->done < HEAD_BYTES)
        memcpy(progress->head + progress->done, buf, (size_t)ovf_min(len, HEAD_BYTES - progress->done));
    hash_update(progress->hash, buf, len);
    progress->done += len;
    return progress->done == unit->at.len ? judge(progress, unit, err) : 0;
}

static int skip_to(struct stream *stream, struct progress *progress, const struct unit *unit, uint64_t within,
    struct ckpt_err *err) {
    int rc = 0;
    while (!rc && progress->done < within)
        rc = advance(stream, progress, unit, stream->scratch,
            (size_t)ovf_min(SCRATCH_BYTES, within - progress->done), err);
    return rc;
}

/* ---- as a source --------------------------------------------------------------------------------------- */

static int serve(
    struct stream *stream, uint64_t index, uint64_t off, void *buf, size_t len, struct ckpt_err *err) {
    struct progress *progress = &stream->units[index];
    const struct unit unit = unit_get(stream->table, index);
    uint64_t within = off - unit.at.off;
    if (within + len <= ovf_min(progress->done, HEAD_BYTES)) {
        memcpy(buf, progress->head + within, len);
        return 0;
    }
    if (within < progress->done)
        return guard_read(stream->guard, off, buf, len, stream->cancel, err);
    int rc = skip_to(stream, progress, &unit, within, err);
    return rc ? rc : advance(stream, progress, &unit, buf, len, err);
}

/* At most to the end of the unit. */
static int stream_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    struct stream *stream = stream_of(source);
    size_t want = off < source->size ? (size_t)ovf_min(len, source->size - off) : 0;
    uint64_t index;
    int rc = 0;
    if (!want) {
        *ret_len = 0;
        return 0;
    }
    if (!stream->table || !span_find(stream->table, off, &index)) {
        rc = guard_read(stream->guard, off, buf, want, stream->cancel, err);
    } else {
        struct range at = unit_get(stream->table, index).at;
        want = (size_t)ovf_min(want, at.off + at.len - off);
        rc = serve(stream, index, off, buf, want, err);
    }
    if (!rc)
        *ret_len = want;
    return rc;
}

static int stream_stat(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err) {
    struct source *under = stream_of(source)->under;
    return under->ops->stat(under, ret_stat, err);
}

static void stream_close(struct source *source) {
    struct stream *stream = stream_of(source);
    for (uint64_t i = 0; stream->units && i < stream->table->count; i++) {
        hash_free(stream->units[i].hash);
        free(stream->units[i].head);
    }
    free(stream->units);
    free(stream->scratch);
}

static const struct source_ops stream_ops = {
    .pread = stream_pread, .stat = stream_stat, .close = stream_close};

/* Chunks are small enough for the guard to read them twice from memory, and to verify them beside each other;
 * a list has few units, of one kind. */
static bool hashes_itself(struct guard *guard) {
    const struct unit_table *table = guard_units(guard);
    return guard_mode(guard) != CKPT_VERIFY_OFF && table->count && !table->digests &&
           table->list[0].kind == DIGEST_FNV1A64;
}

int stream_source(struct guard *guard, struct source *under, const struct ckpt_cancel *cancel,
    struct source **ret_stream, struct ckpt_err *err) {
    struct source *source;
    int rc = source_new(sizeof(struct stream), &stream_ops, under->name, &source, err);
    if (rc)
        return rc;
    struct stream *stream = stream_of(source);
    source->size = under->size;
    source->opened = under->opened;
    stream->guard = guard;
    stream->under = under;
    stream->cancel = cancel;
    if (hashes_itself(guard)) {
        stream->table = guard_units(guard);
        stream->units = calloc((size_t)stream->table->count, sizeof *stream->units);
        stream->scratch = malloc(SCRATCH_BYTES);
        if (!stream->units || !stream->scratch)
            rc = err_set(err, CKPT_E_NOMEM, "%s: no memory to read it", under->name);
    }
    if (rc)
        source_close(source);
    else
        *ret_stream = source;
    return rc;
}

int stream_settle(struct source *source, struct ckpt_err *err) {
    struct stream *stream = stream_of(source);
    int rc = 0;
    for (uint64_t i = 0; !rc && stream->table && i < stream->table->count; i++) {
        const struct unit unit = unit_get(stream->table, i);
        if (stream->units[i].done)
            rc = skip_to(stream, &stream->units[i], &unit, unit.at.len, err);
    }
    return rc;
}
