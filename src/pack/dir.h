/* SPDX-License-Identifier: Apache-2.0 */
/* A model from a directory that is laid out as the tree of an .oam: extracted, copied from a mount, or made
 * by hand (doc/pack.md). */
#ifndef PACK_DIR_H
#define PACK_DIR_H

#include "pack/model.h"

/* path outlives the call. Errors: INVAL (malformed, files that do not fit each other), UNSUPPORTED (stored
 * bytes are missing and nothing can stand for them), IO, LIMIT, NOMEM, CHANGED. */
int model_of_dir(const char *path, struct model *model, struct ckpt_err *err);

#endif
