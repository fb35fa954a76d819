/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converting an open checkpoint into another format. What the target cannot hold is told first, all of it; a
 * conversion then fails unless it is to be left out.
 */
#ifndef PACK_CONVERT_H
#define PACK_CONVERT_H

#include "catalog/catalog.h"
#include "source/source.h"

struct convert {
    const struct catalog *catalog;
    struct source *source; /* verified, with the catalog's offsets */
    const struct ckpt_convert *how;
    const struct ckpt_write_options *options; /* or NULL */
    uint64_t refused;                         /* things that were told */
};

/* Errors: UNSUPPORTED (something cannot be held, and how->drop is not set), and those of the writers:
 * safetensors.h, oam.h. */
int convert_to_safetensors(struct convert *convert, const char *path, struct ckpt_err *err);
int convert_to_oam(struct convert *convert, const char *path, struct ckpt_err *err);

#endif
