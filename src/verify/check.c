/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying without reading: one unit, or all of them. */
#include "base/ovf.h"
#include "verify/guard_own.h"
#include "verify/sweep.h"

#include <inttypes.h>
#include <stdlib.h>

static bool any_unknown(struct guard *guard, uint64_t first, uint64_t count) {
    for (uint64_t i = first; i - first < count; i++)
        if (ledger_state(guard->ledger, i) == UNIT_UNKNOWN)
            return true;
    return false;
}

int guard_check_small(struct guard *guard, uint64_t first, uint64_t count, void *scratch, uint64_t *ret_bad,
    struct ckpt_err *err) {
    const struct pass_tell tell = {guard_outcome, guard};
    uint64_t bad = first + count;
    int rc = 0;
    if (any_unknown(guard, first, count))
        rc = sweep_small(guard->source, guard->table, first, count, scratch, &tell, &bad, err);
    for (uint64_t i = first; i < bad; i++) { /* what was found before stays, whatever was read just now */
        if (ledger_state(guard->ledger, i) != UNIT_CORRUPT)
            continue;
        *ret_bad = i;
        return ledger_fault(guard->ledger, i, err);
    }
    if (rc)
        *ret_bad = bad;
    return rc;
}

static int check_span(void *arg, uint64_t first, uint64_t count, void *scratch, uint64_t *ret_bad,
    const struct ckpt_cancel *cancel, const struct ckpt_progress *progress, struct ckpt_err *err) {
    struct guard *guard = arg;
    if (unit_get(guard->table, first).at.len <= SPAN_SMALL_BYTES)
        return guard_check_small(guard, first, count, scratch, ret_bad, err);
    return jobs_need(guard->jobs, first, JOBS_HERE, cancel, progress, err);
}

static int check_one_small(struct guard *guard, uint64_t index, uint64_t len, struct ckpt_err *err) {
    void *scratch = malloc((size_t)ovf_max(len, 1));
    uint64_t bad;
    if (!scratch)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " bytes", len);
    int rc = guard_check_small(guard, index, 1, scratch, &bad, err);
    free(scratch);
    return rc;
}

int guard_check_unit(
    struct guard *guard, uint64_t unit, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    if (unit >= guard->table->count)
        return err_set(
            err, CKPT_E_INVAL, "unit %" PRIu64 " of %" PRIu64 " is wanted", unit, guard->table->count);
    if (guard_idle(guard))
        return 0;
    uint64_t len = unit_get(guard->table, unit).at.len;
    if (len <= SPAN_SMALL_BYTES)
        return check_one_small(guard, unit, len, err);
    return jobs_need(guard->jobs, unit, JOBS_CREW, cancel, NULL, err);
}

int guard_check_all(struct guard *guard, bool keep_going, const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress, struct ckpt_err *err) {
    if (guard_idle(guard))
        return 0;
    return sweep_table(guard->table, keep_going, check_span, guard, cancel, progress, err);
}
