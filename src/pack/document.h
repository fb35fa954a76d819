/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON documents of an .oam's tree back into a model. Members that are not known are passed over, since
 * trees of later versions may have more. A document says "NaN" of any NaN: which one it was is taken from the
 * section's own bytes where they are at hand.
 */
#ifndef PACK_DOCUMENT_H
#define PACK_DOCUMENT_H

#include "pack/model.h"

/* A number that a document may do without. */
struct document_number {
    bool told;
    uint64_t value; /* 0: not told */
};

/* config.json. The architecture config is left to the caller: what stands there as JSON, and how long the
 * document says that it is. Errors of all: INVAL, NOMEM. */
struct document_arch {
    struct model_text json;
    struct document_number bytes;
};
int document_config(
    struct model *model, const char *json, size_t len, struct document_arch *ret_arch, struct ckpt_err *err);
/* progress.json; section (NULL: not at hand) is the progress section. Errors besides: those of data_read. */
int document_progress(
    struct model *model, const char *json, size_t len, const struct data *section, struct ckpt_err *err);
/* optimizer/optimizer.json, likewise; the moments are left to the caller. *ret_parameters: how many the
 * document says there are. */
int document_optimizer(struct model *model, const char *json, size_t len, const struct data *section,
    struct document_number *ret_parameters, struct ckpt_err *err);

/* tensors.json. find fills in where the bytes are, from the names of files that the row has (NULL: none). */
struct document_files {
    struct model_text npy, raw; /* text NULL: none */
};
typedef int document_find(
    void *arg, struct model_tensor *item, const struct document_files *files, struct ckpt_err *err);
int document_tensors(
    struct model *model, const char *json, size_t len, document_find *find, void *arg, struct ckpt_err *err);

#endif
