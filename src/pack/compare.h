/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far apart two runs of numbers are. Pure, no allocation, no errors; inputs are little-endian and need no
 * alignment.
 *
 * Of one type: an element differs when its bits do, so a NaN equals the same NaN only, and -0 differs from 0
 * by 0. Of two types: when its values do, and a NaN when it has other bits as a double. Complex numbers are
 * as far apart as the modulus of their difference; infinities of one sign are 0 apart. A pair with a NaN has
 * no distance: it is counted, and left out of maximum and mean.
 */
#ifndef PACK_COMPARE_H
#define PACK_COMPARE_H

#include "catalog/dtype.h"

/* What was found so far; starts zeroed. */
struct tally {
    uint64_t elements, differing;
    uint64_t nans; /* of differing: pairs with a NaN in them */
    double max;
    bool over;                   /* a distance of two integers that did not fit max_integer */
    uint64_t max_integer;        /* when integers were compared with integers: exact */
    double sum, carry;           /* of the distances; carry is what rounding has cost the sum */
    uint64_t whole_lo, whole_hi; /* their sum when integers of one type were compared, in 128 bits */
};

/* Adds count elements of the types that a .npy file can have (dtype_info.descr). */
void compare(enum dtype a_type, const uint8_t *a, enum dtype b_type, const uint8_t *b, uint64_t count,
    struct tally *tally);
/* Adds count elements that are known to be the same. */
void compare_same(uint64_t count, struct tally *tally);

/* Of all pairs without a NaN; 0 when there are none. */
double compare_mean(const struct tally *tally);

bool compare_is_integer(enum dtype dtype); /* BOOL too */

#endif
