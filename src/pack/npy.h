/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in the header of a NumPy array file. */
#ifndef PACK_NPY_H
#define PACK_NPY_H

#include "pack/model.h"

/*
 * The elements of the array file at `path` as the bytes of the tensor, whose dtype and shape it must have, in
 * C order. Errors: INVAL (no such array), UNSUPPORTED (the tensor's stored bytes have no .npy form: it is
 * quantized, or of a type that NumPy lacks), IO, CHANGED.
 */
int npy_data(const char *path, const struct tensor *tensor, struct data *ret_data, struct ckpt_err *err);

#endif
