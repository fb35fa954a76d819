/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a safetensors file from its start to its end; catalog/outline.h says where everything stands. */
#ifndef PACK_SAFETENSORS_H
#define PACK_SAFETENSORS_H

#include "catalog/catalog.h"
#include "pack/out.h"

struct safetensors_content {
    const struct tensor *items;
    uint64_t count;
    const struct ckpt_pair *metadata; /* none: the file gets no __metadata__ */
    size_t metadata_count;
    /* Appends the data of a tensor: as many bytes as outline_bytes tells. */
    int (*put)(void *arg, const struct tensor *tensor, struct out *out, struct ckpt_err *err);
    void *arg;
};

/*
 * Errors before anything is written: UNSUPPORTED (a tensor that outline_refuses, a rank over the reader's
 * limit), INVAL (a name is not UTF-8 or is there twice, metadata as pairs_check), LIMIT (the header or the
 * data is too large). Later: those of out.h and of content->put; the target is then as it was.
 */
int safetensors_write(const char *path, const struct safetensors_content *content,
    const struct ckpt_write_options *options, struct ckpt_err *err);

#endif
