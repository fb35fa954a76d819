/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor's elements piece by piece, as they are stored and as a .npy file shows them. */
#ifndef PACK_LANE_H
#define PACK_LANE_H

#include "catalog/catalog.h"
#include "source/source.h"

#define LANE_ELEMENTS ((uint64_t)1 << 16) /* a piece, at the most; whole blocks */
#define LANE_BYTES (LANE_ELEMENTS * 16)   /* of one, stored */

struct lane {
    const struct tensor *tensor;
    struct source *source;
    uint64_t base; /* where the tensor's bytes are in the source */
    uint8_t *stored, *values;
};

/* Of any tensor of the catalog, one after another by lane_take. Errors: NOMEM. */
int lane_open(struct source *source, struct lane *ret_lane, struct ckpt_err *err);
void lane_take(struct lane *lane, const struct catalog *catalog, const struct tensor *tensor);
void lane_close(struct lane *lane); /* a zeroed one is allowed */

/* Whether .npy could hold it, and as what. */
bool lane_has_values(const struct tensor *tensor);
enum dtype lane_dtype(const struct tensor *tensor);

/* Bytes [off, off + len) of what is stored, into lane->stored; len is at most LANE_BYTES. Errors: those of
 * source_read. */
int lane_load(struct lane *lane, uint64_t off, size_t len, struct ckpt_err *err);
/* Elements [first, first + count) of a dense tensor, loaded at the start of lane->stored, as values. */
const uint8_t *lane_widen(struct lane *lane, uint64_t first, uint64_t count);
/* Elements [first, first + count) as values, which stay until the next call; count is 1 to LANE_ELEMENTS. */
int lane_values(
    struct lane *lane, uint64_t first, uint64_t count, const uint8_t **ret_values, struct ckpt_err *err);

#endif
