/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor that is in a tree twice: as its stored bytes and as an array. */
#ifndef PACK_TWIN_H
#define PACK_TWIN_H

#include "pack/model.h"

/*
 * Whether the array file at npy holds what the tensor's stored bytes (item->data) mean. Nothing is said of a
 * tensor whose bytes do not fit its shape. Errors: INVAL (it does not, or is no such array), IO, CHANGED,
 * INTR, NOMEM. options may be NULL.
 */
int twin_check(const struct model_tensor *item, const char *npy, const struct ckpt_write_options *options,
    struct ckpt_err *err);

#endif
