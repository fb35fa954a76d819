/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source.h"

#include "base/ovf.h"

#include <inttypes.h>
#include <stdlib.h>

struct concat_part {
    struct source *source;
    uint64_t start; /* where it begins in the whole */
};

struct concat_source {
    struct source source;
    struct concat_part *parts;
    size_t count;
};

static struct concat_source *concat_of(struct source *source) {
    return (struct concat_source *)source;
}

/* The last part that starts at or before off (off < size, so it is not empty and holds the byte at off). */
static struct concat_part *find(struct concat_source *concat, uint64_t off) {
    size_t low = 0, high = concat->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (concat->parts[middle].start <= off)
            low = middle;
        else
            high = middle;
    }
    return &concat->parts[low];
}

/* Stops at the end of a part; the caller comes again for the next one. All that the part had when it was
 * opened must still be there: a short read would tell of the end of the whole. */
static int concat_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    if (off >= source->size || !len) {
        *ret_len = 0;
        return 0;
    }
    struct concat_part *part = find(concat_of(source), off);
    uint64_t at = off - part->start;
    size_t take = (size_t)ovf_min(len, part->source->size - at);
    int rc = source_read(part->source, at, buf, take, err);
    if (rc)
        return rc;
    *ret_len = take;
    return 0;
}

static void latest(int64_t *sec, uint32_t *nsec, int64_t part_sec, uint32_t part_nsec) {
    if (part_sec > *sec || (part_sec == *sec && part_nsec > *nsec)) {
        *sec = part_sec;
        *nsec = part_nsec;
    }
}

/* Adds a part to the sum of those before; false when the sizes pass 2^64. */
static bool add_stat(struct source_stat *sum, const struct source_stat *part, bool first) {
    uint64_t before = first ? 0 : sum->size;
    if (first)
        *sum = *part;
    latest(&sum->atime_sec, &sum->atime_nsec, part->atime_sec, part->atime_nsec);
    latest(&sum->mtime_sec, &sum->mtime_nsec, part->mtime_sec, part->mtime_nsec);
    latest(&sum->ctime_sec, &sum->ctime_nsec, part->ctime_sec, part->ctime_nsec);
    return ovf_add(before, part->size, &sum->size);
}

static int too_large(const struct source *source, struct ckpt_err *err) {
    return err_set(err, CKPT_E_LIMIT, "%s: the sizes of its %zu parts pass 2^64", source->name,
        ((const struct concat_source *)source)->count);
}

static int concat_stat(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err) {
    struct concat_source *concat = concat_of(source);
    struct source_stat sum = {0}, now;
    for (size_t i = 0; i < concat->count; i++) {
        struct source *part = concat->parts[i].source;
        int rc = part->ops->stat(part, &now, err);
        if (rc)
            return rc;
        if (!add_stat(&sum, &now, i == 0))
            return too_large(source, err);
    }
    *ret_stat = sum;
    return 0;
}

static void concat_advise(struct source *source, uint64_t off, uint64_t len, bool needed) {
    uint64_t left = off < source->size ? ovf_min(len, source->size - off) : 0;
    while (left) {
        struct concat_part *part = find(concat_of(source), off);
        uint64_t take = ovf_min(left, part->source->size - (off - part->start));
        source_advise(part->source, off - part->start, take, needed);
        off += take;
        left -= take;
    }
}

static int concat_unchanged(struct source *source, struct ckpt_err *err) {
    struct concat_source *concat = concat_of(source);
    int rc = 0;
    for (size_t i = 0; i < concat->count && !rc; i++)
        rc = source_unchanged(concat->parts[i].source, err);
    return rc;
}

static void concat_close(struct source *source) {
    struct concat_source *concat = concat_of(source);
    for (size_t i = 0; i < concat->count; i++)
        source_close(concat->parts[i].source);
    free(concat->parts);
}

static const struct source_ops concat_ops = {
    .pread = concat_pread,
    .stat = concat_stat,
    .advise = concat_advise,
    .unchanged = concat_unchanged,
    .close = concat_close,
};

/* From here on the parts belong to the source, so that closing it closes them. */
static int take_parts(
    struct concat_source *concat, struct source **parts, size_t count, struct ckpt_err *err) {
    struct source_stat *sum = &concat->source.opened;
    concat->count = count;
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        concat->parts[i] = (struct concat_part){.source = parts[i], .start = sum->size};
        fits = fits && add_stat(sum, &parts[i]->opened, i == 0);
    }
    concat->source.size = sum->size;
    return fits ? 0 : too_large(&concat->source, err);
}

static void close_all(struct source **parts, size_t count) {
    for (size_t i = 0; i < count; i++)
        source_close(parts[i]);
}

int source_concat(
    const char *name, struct source **parts, size_t count, struct source **ret_source, struct ckpt_err *err) {
    struct source *source;
    int rc = source_new(sizeof(struct concat_source), &concat_ops, name, &source, err);
    if (rc) {
        close_all(parts, count);
        return rc;
    }
    concat_of(source)->parts = calloc(count ? count : 1, sizeof(struct concat_part));
    if (!concat_of(source)->parts) {
        rc = err_set(err, CKPT_E_NOMEM, "open %s: no memory for %zu parts", name, count);
        close_all(parts, count); /* after the message: name may be that of a part */
    } else {
        rc = take_parts(concat_of(source), parts, count, err);
    }
    if (rc) {
        source_close(source);
        return rc;
    }
    *ret_source = source;
    return 0;
}
