/* SPDX-License-Identifier: Apache-2.0 */
/* The guard as a source: what reads sources (a writer) then reads verified bytes only. */
#ifndef VERIFY_GUARDED_H
#define VERIFY_GUARDED_H

#include "verify/guard.h"

/* guard (and `under`, the source it guards, for size and times) must outlive the new source and are not
 * closed by it. Reads fail as guard_read does; cancel (NULL allowed) is asked by each. Errors: NOMEM. */
int guarded_source(struct guard *guard, struct source *under, const struct ckpt_cancel *cancel,
    struct source **ret_source, struct ckpt_err *err);

#endif
