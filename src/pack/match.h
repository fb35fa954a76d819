/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors of two groups have one name. */
#ifndef PACK_MATCH_H
#define PACK_MATCH_H

#include "catalog/catalog.h"

#define MATCH_NONE UINT64_MAX

struct match {
    uint64_t *partner_of_a; /* for each tensor of a: its number in b, or MATCH_NONE; owned */
    uint64_t *partner_of_b; /* likewise */
};

/* In O(n log n). Of several with one name the first ones are partners. Errors: NOMEM. */
int match_make(const struct group *a, const struct group *b, struct match *ret_match, struct ckpt_err *err);
void match_free(struct match *match); /* a zeroed one is allowed */

#endif
