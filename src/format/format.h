/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats: one row each. A reader is a function from bytes to a catalog. It reads headers and indexes
 * only, never trusts a number, and reports the first fault in the order of the format's reference reader.
 */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include "catalog/catalog.h"
#include "source/source.h"

/*
 * How a reader asks whether a unit's digest holds. The strict reader of `ckpt verify` asks where the
 * reference reader hashes (when = UNIT_IN_ORDER); a lazy one only asks when something inside the unit could
 * not be parsed (UNIT_BLAME): if the digest does not hold, the unit is damaged and the rest stays readable;
 * if it holds, the file is malformed and the reader fails.
 * Returns 0 (it holds, or is not to be checked), CORRUPT or MISMATCH (it does not hold), or another error
 * (the reader gives up with it).
 */
enum unit_when { UNIT_IN_ORDER, UNIT_BLAME };
struct unit_judge {
    int (*unit)(void *arg, const struct unit *unit, enum unit_when when, struct ckpt_err *err);
    /* All units of a table, in order; the first fault in table order is the answer (strict readers only; a
     * lazy judge returns 0). */
    int (*table)(void *arg, const struct unit_table *table, struct ckpt_err *err);
    void *arg;
};

struct format {
    const char *name; /* as in checkpoint.json */
    /* Whether the first bytes say that it is this format. head holds min(4096, size) bytes. */
    bool (*probe)(const uint8_t *head, size_t head_len, uint64_t size);
    /* The file name's ending that makes an unrecognized file a malformed one of this format; NULL: none. */
    const char *suffix;
    /*
     * Reads *source. base: where *source starts in what the catalog's ranges are about (the payload's start
     * inside an envelope, else 0). May replace *source by one that owns it (the shards of an index).
     * On failure the caller frees what the catalog holds.
     */
    int (*parse)(struct source **source, uint64_t base, const struct unit_judge *judge,
        struct catalog *catalog, struct ckpt_err *err);
};

extern const struct format format_oam, format_envelope, format_safetensors, format_index;
extern const struct format *const format_table[]; /* NULL at its end */

/*
 * Parses *source as whatever it is (an envelope's payload too). catalog is zeroed by the caller and freed by
 * it in any case. Errors: FORMAT (with the common mistakes by name: a Git LFS pointer, an HTML page, a
 * pickle, a zip), CORRUPT, LIMIT, MISMATCH, IO, CHANGED, NOMEM.
 */
int format_parse(
    struct source **source, const struct unit_judge *judge, struct catalog *catalog, struct ckpt_err *err);

/* The format whose bytes these are; NULL when none. suffix_of: also by the name's ending (or NULL). */
const struct format *format_find(const uint8_t *head, size_t head_len, uint64_t size, const char *suffix_of);

#endif
