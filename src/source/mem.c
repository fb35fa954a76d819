/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source.h"

#include "base/ovf.h"

#include <string.h>

struct mem_source {
    struct source source;
    const char *bytes;
};

static int mem_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    (void)err;
    size_t take = off < source->size ? (size_t)ovf_min(len, source->size - off) : 0;
    if (take)
        memcpy(buf, ((struct mem_source *)source)->bytes + off, take);
    *ret_len = take;
    return 0;
}

static int mem_stat(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err) {
    (void)err;
    *ret_stat = source->opened;
    return 0;
}

static const struct source_ops mem_ops = {.pread = mem_pread, .stat = mem_stat};

int source_from_mem(
    const char *name, const void *bytes, uint64_t len, struct source **ret_source, struct ckpt_err *err) {
    struct source *source;
    int rc = source_new(sizeof(struct mem_source), &mem_ops, name, &source, err);
    if (rc)
        return rc;
    ((struct mem_source *)source)->bytes = bytes;
    source->size = source->opened.size = len;
    *ret_source = source;
    return 0;
}
