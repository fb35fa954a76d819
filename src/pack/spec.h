/* SPDX-License-Identifier: Apache-2.0 */
/* A model from its description, a JSON file (doc/pack.md). */
#ifndef PACK_SPEC_H
#define PACK_SPEC_H

#include "pack/model.h"

/* path outlives the call. Errors: INVAL (malformed, or a file of data is no regular file), IO, LIMIT, NOMEM,
 * CHANGED. */
int model_of_spec(const char *path, struct model *model, struct ckpt_err *err);

#endif
