/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_diff: both checkpoints read once, verified on the way. */
#include "pack/diff.h"
#include "base/err.h"
#include "reading.h"
#include "verify/stream.h"

static int stream_open(
    struct ckpt *ckpt, const struct ckpt_cancel *cancel, struct diff_side *ret_side, struct ckpt_err *err) {
    int rc = stream_source(ckpt->guard, ckpt->opened.source, cancel, &ret_side->source, err);
    if (rc)
        return rc;
    ret_side->catalog = &ckpt->opened.catalog;
    rc = reading_vouch(ckpt, ret_side->source, err);
    return rc ? err_wrap(err, rc, "%s", ret_side->source->name) : 0;
}

static int settle(const struct diff_side *side, struct ckpt_err *err) {
    int rc = stream_settle(side->source, err);
    return rc ? err_wrap(err, rc, "%s", side->source->name) : 0;
}

int ckpt_diff(struct ckpt *a, struct ckpt *b,
    void (*tell)(void *arg, const struct ckpt_difference *difference), void *arg,
    const struct ckpt_write_options *options, uint64_t *ret_count, struct ckpt_err *err) {
    const struct ckpt_cancel *cancel = options ? options->cancel : NULL;
    struct diff_side sides[2] = {{0}};
    struct diff diff = {0};
    int rc = stream_open(a, cancel, &sides[0], err);
    if (!rc)
        rc = stream_open(b, cancel, &sides[1], err);
    if (!rc)
        rc = diff_run(&diff, sides, options, err);
    if (!rc)
        rc = settle(&sides[0], err);
    if (!rc)
        rc = settle(&sides[1], err);
    uint64_t count = rc ? 0 : diff_tell(&diff, tell, arg);
    if (!rc && ret_count)
        *ret_count = count;
    diff_free(&diff);
    source_close(sides[0].source);
    source_close(sides[1].source);
    return rc;
}
