/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: what is known of each unit. A byte a unit, and more only for what was found: the digests of the
 * blocks of verified large units, and what is wrong with corrupt ones. A unit that is corrupt
 * stays so.
 *
 * Threads: every call from any thread. The log is told outside of all locks, once for each corrupt unit.
 */
#ifndef VERIFY_LEDGER_H
#define VERIFY_LEDGER_H

#include "verify/guard.h"

struct ledger;

/* table outlives the ledger. Errors: NOMEM, INVAL (a unit outside of source_bytes). */
int ledger_new(const struct unit_table *table, uint64_t source_bytes, const struct ckpt_log *log,
    struct ledger **ret_ledger, struct ckpt_err *err);
void ledger_free(struct ledger *ledger);

enum unit_state ledger_state(const struct ledger *ledger, uint64_t index);
/* The block digests of a verified unit, in order; NULL when it was verified without. They live as long as
 * the ledger. */
const uint64_t *ledger_blocks(const struct ledger *ledger, uint64_t index);

/* The unit holds. Takes `blocks` (malloc; NULL: none) over; they count only the first time. */
void ledger_verified(struct ledger *ledger, uint64_t index, uint64_t *blocks);
/* The unit's digest is `found`, not its own. */
void ledger_differs(struct ledger *ledger, uint64_t index, const uint8_t found[32]);
/* The block at absolute offset `off` is not the one that was verified. */
void ledger_changed(struct ledger *ledger, uint64_t index, uint64_t off);

/* The error that every reader of a corrupt unit gets; 0 when it is not corrupt. */
int ledger_fault(struct ledger *ledger, uint64_t index, struct ckpt_err *err);
bool ledger_found(struct ledger *ledger, uint64_t index, uint8_t digest[32]);
bool ledger_corrupt(struct ledger *ledger, uint64_t n, uint64_t *ret_index);
void ledger_tally(struct ledger *ledger, struct guard_tally *ret_tally);

#endif
