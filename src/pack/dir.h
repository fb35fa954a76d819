/* SPDX-License-Identifier: Apache-2.0 */
/* A model from a directory that is laid out as the tree of an .oam: extracted, copied from a mount, or made
 * by hand (doc/pack.md). */
#ifndef PACK_DIR_H
#define PACK_DIR_H

#include "pack/model.h"

/* path outlives the call. What is in the tree twice is compared, which reads all of it; options (NULL
 * allowed) can stop that. Errors: INVAL (malformed, files that do not fit each other), UNSUPPORTED (stored
 * bytes are missing and nothing can stand for them), IO, LIMIT, NOMEM, CHANGED, INTR. */
int model_of_dir(
    const char *path, const struct ckpt_write_options *options, struct model *model, struct ckpt_err *err);

#endif
