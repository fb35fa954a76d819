/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_pack: a model from a description or a directory to an .oam. */
#include "pack/dir.h"
#include "pack/oam.h"
#include "pack/spec.h"

#include <errno.h>
#include <sys/stat.h>

static int gather(
    const char *from, const struct ckpt_write_options *options, struct model *model, struct ckpt_err *err) {
    struct stat st;
    if (stat(from, &st) < 0)
        return err_os(err, errno, "%s", from);
    return S_ISDIR(st.st_mode) ? model_of_dir(from, options, model, err) : model_of_spec(from, model, err);
}

int ckpt_pack(
    const char *from, const char *to, const struct ckpt_write_options *options, struct ckpt_err *err) {
    struct model model = {0};
    int rc = gather(from, options, &model, err);
    if (!rc)
        rc = oam_write(to, &model, options, err);
    model_free(&model);
    return rc;
}
