/* SPDX-License-Identifier: Apache-2.0 */
/* Where the float32 members of an .oam's documents stand in the sections that they were made from: JSON knows
 * one NaN, and which one it was is known from there alone. Pure. */
#ifndef PACK_NANS_H
#define PACK_NANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NANS_PROGRESS_OFFSET 28  /* after phase, step, bytes_seen, env_steps */
#define NANS_OPTIMIZER_OFFSET 16 /* after kind */

/* The offset in its section of a member of the document `path`; false: that is no such member. */
bool nans_place(const char *path, const char *member, size_t member_len, uint64_t *ret_off);

#endif
