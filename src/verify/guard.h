/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: the only door through which source bytes leave, and it opens only for what the ledger has
 * verified. What was verified is what is served: while a unit of more than 16 KiB is streamed, a keyed
 * digest of each block (16 KiB, or more where a source is very large) is kept, and every later read from the
 * source is checked against it. A smaller unit is checked by its own digest at every read.
 *
 * Without digests (plain safetensors) bytes are served as they are, and CHANGED is returned once the
 * source's size or modification time differ. In mode OFF nothing at all is checked.
 *
 * Threads: every call from any thread. No lock is held while reading or hashing.
 */
#ifndef VERIFY_GUARD_H
#define VERIFY_GUARD_H

#include "catalog/catalog.h"
#include "source/source.h"
#include "verify/witness.h"

/* A block, at the least: of a source with more of them than their digests may take memory, twice as much, or
 * four times, and so on. */
#define GUARD_BLOCK_BYTES ((uint64_t)16 * 1024)
#define GUARD_BLOCK_BYTES_MAX ((uint64_t)512 * 1024)

struct guard;

struct guard_options {
    enum ckpt_verify_mode mode;
    /* The memory of the whole program for verified reads; 0: 64 MiB. The guard takes a quarter of it for
     * blocks and an eighth for their digests; half of it is left to who replies, and the rest to passes. That
     * rest is not enforced: a pass over a long unit has 2 MiB of buffers, and as many run as there are cores
     * (4 at least, 16 at most). */
    uint64_t cache_bytes;
    struct ckpt_log log;
};

/*
 * source, units and witness (NULL: nothing was witnessed, guard_vouch always holds) must outlive the guard.
 * Starts no thread. Errors: NOMEM, IO (no random key), INVAL (a unit outside of the source).
 */
int guard_new(struct source *source, const struct unit_table *units, struct witness *witness,
    const struct guard_options *options, struct guard **ret_guard, struct ckpt_err *err);
void guard_free(struct guard *guard); /* stops its threads first */

/* Starts what runs in the background in mode BACKGROUND. Call after the last fork. */
int guard_start(struct guard *guard, struct ckpt_err *err);

/*
 * Exactly len verified bytes at off. Bytes that no unit covers (header, padding) are served unchecked only
 * where the source has no digests; else they are an error of the caller (INVAL).
 * Errors: CORRUPT (.oam section; words "section payload checksum mismatch"), MISMATCH ("chunk-mismatch N"),
 * CORRUPT also when the source ended or is not what was verified, CHANGED, IO, INTR, NOMEM. After a unit was
 * found damaged it stays so; a source that ended or failed is read anew the next time.
 */
int guard_read(struct guard *guard, uint64_t off, void *buf, size_t len, const struct ckpt_cancel *cancel,
    struct ckpt_err *err);

/*
 * Were the parsed bytes the verified ones? 0 when everything that was parsed from `range` is, byte for byte,
 * what the digests vouch for: reads it once through guard_read, remembers. Errors as guard_read, and CORRUPT
 * when it is not. len 0: 0 at once. What no unit covers is not judged.
 */
int guard_vouch(
    struct guard *guard, struct range range, const struct ckpt_cancel *cancel, struct ckpt_err *err);
/* The same of what `by`, a source of the guard's bytes that verifies them by itself (stream.h), gives now.
 * Nothing is remembered. */
int guard_vouch_by(struct guard *guard, struct range range, struct source *by, struct ckpt_err *err);

/* ---- what is known ---------------------------------------------------------------------------------- */

enum unit_state { UNIT_UNKNOWN, UNIT_VERIFIED, UNIT_CORRUPT };

struct guard_tally {
    uint64_t units, verified, corrupt, bytes, bytes_verified;
};
void guard_tally(struct guard *guard, struct guard_tally *ret_tally);
enum unit_state guard_unit_state(struct guard *guard, uint64_t unit);
/* The digest that was computed of a corrupt unit (digest_kind's length). False when the unit is not corrupt,
 * or when it was verified and one of its blocks differed later. */
bool guard_unit_found(struct guard *guard, uint64_t unit, uint8_t digest[32]);
/* Worst state over the units that range touches: CORRUPT before UNKNOWN before VERIFIED. */
enum unit_state guard_range_state(struct guard *guard, struct range range);
enum ckpt_verify_mode guard_mode(const struct guard *guard);
const struct unit_table *guard_units(const struct guard *guard);
/* Index of the n-th corrupt unit in ascending order; false when there are fewer. */
bool guard_corrupt_unit(struct guard *guard, uint64_t n, uint64_t *ret_unit);

/* Verifies one unit now, if it is not known yet (the answer is in the return value, as guard_read's). */
int guard_check_unit(
    struct guard *guard, uint64_t unit, const struct ckpt_cancel *cancel, struct ckpt_err *err);
/* All units with all cores; the error is that of the first bad unit in table order. Stops with it unless
 * keep_going, which looks at all units first. */
int guard_check_all(struct guard *guard, bool keep_going, const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress, struct ckpt_err *err);

#endif
