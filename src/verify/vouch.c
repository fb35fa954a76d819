/* SPDX-License-Identifier: Apache-2.0 */
/* Were the bytes that were parsed at opening the ones that the digests vouch for? */
#include "base/ovf.h"
#include "verify/guard_own.h"

#include <inttypes.h>
#include <stdlib.h>

static bool was_vouched(struct guard *guard, struct range range) {
    bool found = false;
    pthread_mutex_lock(&guard->lock);
    for (size_t i = 0; !found && i < guard->vouched_count; i++)
        found = guard->vouched[i].off == range.off && guard->vouched[i].len == range.len;
    pthread_mutex_unlock(&guard->lock);
    return found;
}

/* Without memory to remember, the next call reads again. */
static void remember(struct guard *guard, struct range range) {
    pthread_mutex_lock(&guard->lock);
    if (guard->vouched_count == guard->vouched_cap) {
        size_t cap = guard->vouched_cap ? guard->vouched_cap * 2 : 16;
        struct range *list = reallocarray(guard->vouched, cap, sizeof *list);
        guard->vouched = list ? list : guard->vouched;
        guard->vouched_cap = list ? cap : guard->vouched_cap;
    }
    if (guard->vouched_count < guard->vouched_cap)
        guard->vouched[guard->vouched_count++] = range;
    pthread_mutex_unlock(&guard->lock);
}

/* Every byte lies in some unit. */
static bool in_units(struct guard *guard, struct range range) {
    uint64_t end = range.off + range.len, index;
    for (uint64_t at = range.off; at < end;) {
        if (!span_find(guard->table, at, &index))
            return false;
        struct range unit = unit_get(guard->table, index).at;
        at = guard->table->digests ? guard->table->base + guard->table->total : unit.off + unit.len;
    }
    return true;
}

/* How what was parsed is read again. */
struct reader {
    struct guard *guard;
    struct source *by; /* NULL: the guard itself */
    const struct ckpt_cancel *cancel;
};

static int read_again(const struct reader *reader, struct range at, void *bytes, struct ckpt_err *err) {
    return reader->by ? source_read(reader->by, at.off, bytes, (size_t)at.len, err)
                      : guard_read(reader->guard, at.off, bytes, (size_t)at.len, reader->cancel, err);
}

static int confirm(const struct reader *reader, const struct testimony *testimony, struct ckpt_err *err) {
    struct guard *guard = reader->guard;
    struct range at = testimony->at;
    if (!in_units(guard, at)) /* the header of a bare .oam: no digest vouches for it */
        return 0;
    void *bytes = malloc((size_t)at.len);
    if (!bytes)
        return err_set(err, CKPT_E_NOMEM, "no memory to read %" PRIu64 " parsed bytes again", at.len);
    int rc = read_again(reader, at, bytes, err);
    if (!rc && witness_digest(guard->witness, bytes, (size_t)at.len) != testimony->digest)
        rc = err_set(err, CKPT_E_CORRUPT,
            "%s: the %" PRIu64 " bytes at offset %" PRIu64
            " that were parsed at opening are not the verified ones",
            guard->source->name, at.len, at.off);
    free(bytes);
    return rc;
}

static bool is_within(struct range inner, struct range outer) {
    return inner.off >= outer.off && ovf_inside(inner.off - outer.off, inner.len, outer.len);
}

/*
 * What was read within the range; *ret_all tells whether that is all of it. Reads that stray over the range's
 * borders (the probe of the first bytes) would drag other units in, damaged ones perhaps, so they only count
 * where the range was not read by itself.
 */
static int confirm_reads(
    const struct reader *reader, struct range range, bool inner, bool *ret_all, struct ckpt_err *err) {
    uint64_t reached = range.off;
    struct testimony one;
    int rc = 0;
    for (uint64_t n = 0; !rc && witness_recall(reader->guard->witness, range, n, &one); n++) {
        if (is_within(one.at, range) != inner)
            continue;
        rc = confirm(reader, &one, err);
        if (one.at.off <= reached)
            reached = ovf_max(reached, one.at.off + one.at.len);
    }
    *ret_all = reached - range.off >= range.len;
    return rc;
}

static int vouch(const struct reader *reader, struct range range, struct ckpt_err *err) {
    bool all = true;
    int rc = confirm_reads(reader, range, true, &all, err);
    return rc || all ? rc : confirm_reads(reader, range, false, &all, err);
}

static bool is_nothing(const struct guard *guard, struct range range) {
    return range.len == 0 || !guard->witness || guard_idle(guard);
}

int guard_vouch(
    struct guard *guard, struct range range, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    if (is_nothing(guard, range) || was_vouched(guard, range))
        return 0;
    int rc = vouch(&(struct reader){guard, NULL, cancel}, range, err);
    if (!rc)
        remember(guard, range);
    return rc;
}

int guard_vouch_by(struct guard *guard, struct range range, struct source *by, struct ckpt_err *err) {
    return is_nothing(guard, range) ? 0 : vouch(&(struct reader){guard, by, NULL}, range, err);
}
