/* SPDX-License-Identifier: Apache-2.0 */
/* The order of an .oam's weights, as a safetensors file's metadata keeps it. */
#ifndef PACK_CONVERT_ORDER_H
#define PACK_CONVERT_ORDER_H

#include "base/err.h"
#include "pack/model.h"

/*
 * Puts the tensors that a JSON array names first, in its order; the others follow as they stood. Names that
 * are no tensor's are passed over: the file may have been changed since. Errors: INVAL (no array of strings),
 * NOMEM.
 */
int convert_order(struct model_tensors *tensors, const char *json, size_t len, struct ckpt_err *err);

#endif
