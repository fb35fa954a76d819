/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int source_new(size_t bytes, const struct source_ops *ops, const char *name, struct source **ret_source,
    struct ckpt_err *err) {
    struct source *source = calloc(1, bytes);
    char *copy = strdup(name);
    if (!source || !copy) {
        free(source);
        free(copy);
        return err_set(err, CKPT_E_NOMEM, "open %s: no memory", name);
    }
    source->ops = ops;
    source->name = copy;
    *ret_source = source;
    return 0;
}

void source_close(struct source *source) {
    if (!source)
        return;
    if (source->ops->close)
        source->ops->close(source);
    free(source->name);
    free(source);
}

/* The source ended after `done` of the bytes; without any, only stat knows where. */
static int ended_early(struct source *source, uint64_t off, size_t done, size_t len, struct ckpt_err *err) {
    struct source_stat now = {0};
    uint64_t end = off + done;
    if (!done && !source->ops->stat(source, &now, NULL))
        end = now.size;
    return err_set(err, CKPT_E_CHANGED,
        "%s: ended at byte %" PRIu64 ", %zu bytes at offset %" PRIu64 " wanted", source->name, end, len, off);
}

int source_read(struct source *source, uint64_t off, void *buf, size_t len, struct ckpt_err *err) {
    for (size_t done = 0; done < len;) {
        size_t got = 0;
        int rc = source->ops->pread(source, off + done, (char *)buf + done, len - done, &got, err);
        if (rc)
            return rc;
        if (!got)
            return ended_early(source, off, done, len, err);
        done += got;
    }
    return 0;
}

int source_unchanged(struct source *source, struct ckpt_err *err) {
    if (source->ops->unchanged)
        return source->ops->unchanged(source, err);
    struct source_stat now, *then = &source->opened;
    int rc = source->ops->stat(source, &now, err);
    if (rc)
        return rc;
    if (now.size != then->size)
        return err_set(err, CKPT_E_CHANGED,
            "%s: changed after it was opened: %" PRIu64 " bytes, were %" PRIu64, source->name, now.size,
            then->size);
    if (now.mtime_sec != then->mtime_sec || now.mtime_nsec != then->mtime_nsec)
        return err_set(err, CKPT_E_CHANGED,
            "%s: changed after it was opened: modified at %" PRId64 ".%09" PRIu32 ", was %" PRId64
            ".%09" PRIu32,
            source->name, now.mtime_sec, now.mtime_nsec, then->mtime_sec, then->mtime_nsec);
    return 0;
}

/* Names come from strangers' indexes: nothing outside the directory is ever opened by one. */
static bool stays_beside(const char *name) {
    return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

int source_sibling(
    struct source *source, const char *name, struct source **ret_source, struct ckpt_err *err) {
    if (!stays_beside(name))
        return err_set(err, CKPT_E_CORRUPT, "%s: \"%s\" is no name of a file beside it", source->name, name);
    if (!source->ops->sibling)
        return err_set(err, CKPT_E_NOENT, "%s: nothing stands beside it, \"%s\" wanted", source->name, name);
    return source->ops->sibling(source, name, ret_source, err);
}

void source_advise(struct source *source, uint64_t off, uint64_t len, bool needed) {
    if (len && source->ops->advise)
        source->ops->advise(source, off, len, needed);
}
