/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the conversions share. convert_metadata.c: what of an .oam besides its weights stands in the metadata
 * of a safetensors file, so that it can be made an .oam again:
 *
 *   oam.config       config.json, as in the tree
 *   oam.arch_config  raw/arch_config.bin in hexadecimal digits; none when it is empty
 *   oam.progress     progress.json; with learning_rate_bits and best_metric_bits when one of them is a NaN
 *   oam.order        the names of the weights in their order, a JSON array; none when it is the file's
 *   format           "pt": which library's conventions the file follows. Programs ask for it, it means
 * nothing
 */
#ifndef PACK_CONVERT_OWN_H
#define PACK_CONVERT_OWN_H

#include "pack/convert.h"
#include "pack/metadata.h"

#define KEY_CONFIG "oam.config"
#define KEY_ARCH_CONFIG "oam.arch_config"
#define KEY_PROGRESS "oam.progress"
#define KEY_ORDER "oam.order"
#define KEY_FORMAT "format"

/* Tells of a thing that the target cannot hold, and why. */
void convert_refuse(struct convert *convert, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* UNSUPPORTED when something was told and is not to be left out. target: ".oam" */
int convert_judge(const struct convert *convert, const char *target, struct ckpt_err *err);

bool convert_is_oam(const struct catalog *catalog);
/* What no version of .oam that is written has a place for. */
void convert_refuse_sections(struct convert *convert);
/* NULL: there is none. */
const struct document *convert_document(const struct catalog *catalog, const char *path);

/* The metadata of a safetensors file from the .oam; items are the count weights that it will hold, in their
 * order. Errors: NOMEM, and those of source_read. */
int convert_describe(struct convert *convert, const struct tensor *items, uint64_t count,
    struct metadata *metadata, struct ckpt_err *err);
/*
 * The metadata of a safetensors file, or of a set: that of the shards, then that of the index. Values of the
 * index that are no strings go to others, but for total_size and total_parameters. Keys that do not agree
 * are told. Errors: NOMEM.
 */
int convert_gather(
    struct convert *convert, struct metadata *metadata, struct metadata *others, struct ckpt_err *err);

#endif
