/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source.h"

#include "base/ovf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct slice_source {
    struct source source;
    struct source *under;
    uint64_t off;
};

static struct slice_source *slice_of(struct source *source) {
    return (struct slice_source *)source;
}

static int slice_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    struct source *under = slice_of(source)->under;
    if (off < source->size)
        return under->ops->pread(
            under, slice_of(source)->off + off, buf, (size_t)ovf_min(len, source->size - off), ret_len, err);
    *ret_len = 0;
    return 0;
}

/* As much of the slice as is left of what it lies on. */
static int slice_stat(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err) {
    struct source *under = slice_of(source)->under;
    struct source_stat now;
    int rc = under->ops->stat(under, &now, err);
    if (rc)
        return rc;
    uint64_t off = slice_of(source)->off;
    now.size = ovf_min(source->size, now.size > off ? now.size - off : 0);
    *ret_stat = now;
    return 0;
}

static void slice_advise(struct source *source, uint64_t off, uint64_t len, bool needed) {
    if (off < source->size)
        source_advise(
            slice_of(source)->under, slice_of(source)->off + off, ovf_min(len, source->size - off), needed);
}

static int slice_unchanged(struct source *source, struct ckpt_err *err) {
    return source_unchanged(slice_of(source)->under, err);
}

static const struct source_ops slice_ops = {
    .pread = slice_pread,
    .stat = slice_stat,
    .advise = slice_advise,
    .unchanged = slice_unchanged,
};

int source_slice(
    struct source *under, uint64_t off, uint64_t len, struct source **ret_source, struct ckpt_err *err) {
    if (!ovf_inside(off, len, under->size))
        return err_set(err, CKPT_E_INVAL, "%s: offset %" PRIu64 " + size %" PRIu64 " past end %" PRIu64,
            under->name, off, len, under->size);
    char *name; /* says so, since the offsets in messages are the slice's own */
    if (asprintf(&name, "%s, from byte %" PRIu64, under->name, off) < 0)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory for a part of it", under->name);
    struct source *source;
    int rc = source_new(sizeof(struct slice_source), &slice_ops, name, &source, err);
    free(name);
    if (rc)
        return rc;
    slice_of(source)->under = under;
    slice_of(source)->off = off;
    source->opened = under->opened;
    source->size = source->opened.size = len;
    *ret_source = source;
    return 0;
}
