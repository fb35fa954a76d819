/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a description or a directory of a model names: by paths that stay below its folder, so that
 * what was made elsewhere cannot reach for other files.
 */
#ifndef PACK_FILES_H
#define PACK_FILES_H

#include "base/buf.h"
#include "pack/model.h"

/* folder (without a slash at its end; "" is the current one) and name; into the arena. Errors: INVAL (an
 * absolute path, "..", a NUL, or nothing at all), NOMEM. */
int files_path(const char *folder, const struct model_text *name, struct arena *arena, char **ret_path,
    struct ckpt_err *err);
/* Something of that name is there. */
bool files_exists(const char *path);
/* All of a regular file, not opened yet. path stays alive. Errors: IO, INVAL (something else than a regular
 * file). */
int files_data(const char *path, struct data *ret_data, struct ckpt_err *err);
/* Its text, to be freed with buf_free. Errors besides: LIMIT (over 1 GiB), NOMEM, CHANGED. */
int files_load(const char *path, struct buf *ret_text, struct ckpt_err *err);

#endif
