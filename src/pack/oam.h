/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing an .oam, version 3, as the format's reference writer does: config, weights, state, optimizer and
 * progress in this order, and byte for byte the same for the same model.
 */
#ifndef PACK_OAM_H
#define PACK_OAM_H

#include "pack/model.h"

/*
 * Whether the model can be written, in the order of the reference writer, whose words the errors carry: names
 * of config and progress, weights, state, optimizer. Fills in tensor.elements. Errors: INVAL, NOMEM, LIMIT
 * (more than the format can count).
 */
int oam_check(struct model *model, struct ckpt_err *err);

/* Its first parts alone. */
int oam_check_config(const struct model_config *config, struct ckpt_err *err);
int oam_check_progress(const struct model_progress *progress, struct ckpt_err *err);

/* Checks the model, then writes it. Errors before anything is written: those of oam_check. Later: those of
 * out.h and of model.h; the target is then as it was. */
int oam_write(
    const char *path, struct model *model, const struct ckpt_write_options *options, struct ckpt_err *err);

#endif
