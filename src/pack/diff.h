/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two checkpoints. Everything is read before anything is told (verify/stream.h). */
#ifndef PACK_DIFF_H
#define PACK_DIFF_H

#include "base/buf.h"
#include "catalog/catalog.h"
#include "pack/compare.h"
#include "source/source.h"

struct diff_side {
    const struct catalog *catalog;
    struct source *source; /* the catalog's ranges are about it */
};

/* What was found of a pair of tensors. */
struct diff_tensor {
    const struct tensor *a, *b; /* NULL: there is none */
    bool same;                  /* and nothing is to be told */
    bool compared;              /* tally is filled */
    struct tally tally;
};

/* The tensors of one group: those of a in their order, then those that only b has. */
struct diff_group {
    struct diff_tensor *items; /* owned */
    uint64_t count;
};

struct diff {
    struct diff_group groups[GROUP_COUNT];
    struct ckpt_difference *others; /* members of documents, and files; owned */
    size_t other_count, other_cap;
    struct arena names;
};

/* Starts zeroed; diff_free in any case. Errors: those of source_read, INTR, NOMEM. */
int diff_run(struct diff *diff, const struct diff_side sides[2], const struct ckpt_write_options *options,
    struct ckpt_err *err);
uint64_t diff_tell(const struct diff *diff, void (*tell)(void *arg, const struct ckpt_difference *difference),
    void *arg); /* returns how many */
void diff_free(struct diff *diff);

/* ---- its parts ----------------------------------------------------------------------------------------- */

/* Compares all pairs of the groups in the order of a's bytes. */
int diff_tensors(struct diff *diff, const struct diff_side sides[2], const struct ckpt_write_options *options,
    struct ckpt_err *err);
/* Documents by their members, and files of bytes. */
int diff_others(struct diff *diff, const struct diff_side sides[2], const struct ckpt_write_options *options,
    struct ckpt_err *err);
/* Documents alone. The float32 members of an .oam's differ by their bits, too: those of a NaN are shown. */
int diff_documents(struct diff *diff, const struct diff_side sides[2], struct ckpt_err *err);

int diff_add(struct diff *diff, const struct ckpt_difference *difference, struct ckpt_err *err);
/* Of a document or file as a whole. */
int diff_add_whole(struct diff *diff, const char *place, enum ckpt_difference_kind kind, uint64_t a_bytes,
    uint64_t b_bytes, struct ckpt_err *err);
/* source_read, with the side's name in the message. */
int diff_read(const struct diff_side *side, uint64_t off, void *buf, size_t len, struct ckpt_err *err);

#endif
