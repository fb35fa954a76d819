/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/guarded.h"

#include "base/ovf.h"

struct guarded {
    struct source source;
    struct guard *guard;
    struct source *under;
    const struct ckpt_cancel *cancel;
};

static struct guarded *guarded_of(struct source *source) {
    return (struct guarded *)source;
}

static int guarded_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    struct guarded *guarded = guarded_of(source);
    size_t want = off < source->size ? (size_t)ovf_min(len, source->size - off) : 0;
    int rc = want ? guard_read(guarded->guard, off, buf, want, guarded->cancel, err) : 0;
    if (!rc)
        *ret_len = want;
    return rc;
}

static int guarded_stat(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err) {
    struct source *under = guarded_of(source)->under;
    return under->ops->stat(under, ret_stat, err);
}

static void guarded_advise(struct source *source, uint64_t off, uint64_t len, bool needed) {
    source_advise(guarded_of(source)->under, off, len, needed);
}

static int guarded_unchanged(struct source *source, struct ckpt_err *err) {
    return source_unchanged(guarded_of(source)->under, err);
}

static const struct source_ops guarded_ops = {
    .pread = guarded_pread,
    .stat = guarded_stat,
    .advise = guarded_advise,
    .unchanged = guarded_unchanged,
};

int guarded_source(struct guard *guard, struct source *under, const struct ckpt_cancel *cancel,
    struct source **ret_source, struct ckpt_err *err) {
    struct source *source;
    int rc = source_new(sizeof(struct guarded), &guarded_ops, under->name, &source, err);
    if (rc)
        return rc;
    source->size = under->size;
    source->opened = under->opened;
    guarded_of(source)->guard = guard;
    guarded_of(source)->under = under;
    guarded_of(source)->cancel = cancel;
    *ret_source = source;
    return 0;
}
