/* SPDX-License-Identifier: Apache-2.0 */
/* All units of a table with all cores: shares them out in spans and finds the first fault in table order. */
#ifndef VERIFY_SWEEP_H
#define VERIFY_SWEEP_H

#include "verify/pass.h"

#define SWEEP_SPAN_BYTES ((uint64_t)1 << 20) /* small units are taken together up to this */

/*
 * Checks units [first, first + count): one large unit, or small ones that follow each other. scratch holds
 * SWEEP_SPAN_BYTES. The error is that of the first bad unit of the span, whose index goes to *ret_bad (set to
 * `first` by the caller). Called from any thread.
 */
typedef int sweep_check(void *arg, uint64_t first, uint64_t count, void *scratch, uint64_t *ret_bad,
    const struct ckpt_cancel *cancel, const struct ckpt_progress *progress, struct ckpt_err *err);

/*
 * 0, or the error of the first bad unit in table order; with keep_going all units are looked at before that,
 * without it none after it is begun. cancel and progress (NULL allowed) are called on the caller's thread.
 */
int sweep_table(const struct unit_table *table, bool keep_going, sweep_check *check, void *arg,
    const struct ckpt_cancel *cancel, const struct ckpt_progress *progress, struct ckpt_err *err);

/*
 * Checks small units that follow each other, read at once into scratch, and tells each outcome (NULL:
 * nobody). Goes through all of them; the error is that of the first bad one, whose index goes to *ret_bad.
 */
int sweep_small(struct source *source, const struct unit_table *table, uint64_t first, uint64_t count,
    void *scratch, const struct pass_tell *tell, uint64_t *ret_bad, struct ckpt_err *err);

#endif
