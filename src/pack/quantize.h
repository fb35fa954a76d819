/* SPDX-License-Identifier: Apache-2.0 */
/* A quantized copy of a model. */
#ifndef PACK_QUANTIZE_H
#define PACK_QUANTIZE_H

#include "pack/model.h"

/*
 * Makes the model its own quantized copy: dense F32 weights of rank 2 and more that are not empty become
 * `encoding` (ENCODING_Q4 or ENCODING_Q8) when they are written, everything else stays, and the optimizer is
 * dropped. Errors: INVAL (no such weight, one that is quantized already, one of rank 2 or more of another
 * type); the model is then of no use.
 */
int quantize_model(struct model *model, enum encoding encoding, struct ckpt_err *err);

#endif
