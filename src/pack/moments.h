/* SPDX-License-Identifier: Apache-2.0 */
/* How many moments each kind of optimizer keeps. */
#ifndef PACK_MOMENTS_H
#define PACK_MOMENTS_H

#include "pack/model.h"

#include <string.h>

/* 0: .oam has no optimizer of this kind. */
static inline uint32_t moments_of(const struct model_text *kind) {
    static const struct {
        const char *name;
        uint32_t moments;
    } kinds[] = {{"SGD", 2}, {"Adam", 2}, {"AdamW", 2}, {"Muon", 1}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == kind->len && !memcmp(kinds[i].name, kind->text, kind->len))
            return kinds[i].moments;
    return 0;
}

#endif
