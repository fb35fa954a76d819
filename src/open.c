/* SPDX-License-Identifier: Apache-2.0 */
#include "open.h"

#include "format/envelope.h"
#include "pins.h"
#include "verify/pass.h"

/* ---- the judges -------------------------------------------------------------------------------------- */

struct court {
    const struct ckpt_options *opt;
    struct contract contract; /* when opt names one */
    struct opened *opened;
    struct source *file;        /* what to hash: under the witness, whose records are for what was parsed */
    struct strict_tally *tally; /* NULL: lazy */
};

static int check_header(struct court *court, struct ckpt_err *err) {
    const struct ckpt_options *opt = court->opt;
    return pins_judge_header(court->opened->catalog.envelope, opt->contract ? &court->contract : NULL,
        opt->manifest, court->tally || opt->verify == CKPT_VERIFY_FULL, err);
}

/* What one stage of a long work adds to the whole. */
struct stage {
    const struct ckpt_progress *outer;
    uint64_t before, total;
};

static void stage_tell(void *arg, uint64_t done, uint64_t total) {
    struct stage *stage = arg;
    (void)total;
    if (stage->outer && stage->outer->tell)
        stage->outer->tell(stage->outer->arg, stage->before + done, stage->total);
}

static struct stage stage_of(struct court *court) {
    return (struct stage){court->opt->progress, court->tally->bytes, court->file->size};
}

/* Strict: in order, the digest is what the reference reader looks at; nothing is left to blame later. */
static int strict_unit(void *arg, const struct unit *unit, enum unit_when when, struct ckpt_err *err) {
    struct court *court = arg;
    if (when == UNIT_BLAME)
        return 0;
    struct stage stage = stage_of(court);
    const struct ckpt_progress progress = {stage_tell, &stage};
    uint8_t found[32];
    int rc = pass_unit(court->file, unit, NULL, found, court->opt->cancel, &progress, err);
    court->tally->units++;
    court->tally->bytes += unit->at.len;
    return rc;
}

static int strict_table(void *arg, const struct unit_table *table, struct ckpt_err *err) {
    struct court *court = arg;
    int rc = check_header(court, err);
    if (rc)
        return rc;
    struct stage stage = stage_of(court);
    const struct ckpt_progress progress = {stage_tell, &stage};
    rc = pass_table(court->file, table, court->opt->cancel, &progress, err);
    court->tally->units += table->count;
    court->tally->bytes += table->total;
    return rc;
}

/* Lazy: a digest is only asked for when what it covers cannot be parsed. */
static int lazy_unit(void *arg, const struct unit *unit, enum unit_when when, struct ckpt_err *err) {
    struct court *court = arg;
    if (when == UNIT_IN_ORDER || court->opt->verify == CKPT_VERIFY_OFF)
        return 0;
    uint8_t found[32];
    return pass_unit(court->file, unit, NULL, found, court->opt->cancel, NULL, err);
}

static int lazy_table(void *arg, const struct unit_table *table, struct ckpt_err *err) {
    (void)table;
    return check_header(arg, err);
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static int parse(struct court *court, const struct unit_judge *judge, struct ckpt_err *err) {
    struct opened *opened = court->opened;
    int rc = court->opt->contract ? pins_load_contract(court->opt->contract, &court->contract, err) : 0;
    if (!rc && court->opt->contract)
        rc = envelope_judge(court->file, &court->contract, err);
    if (!rc)
        rc = format_parse(&opened->source, judge, &opened->catalog, err);
    if (!rc && court->opt->manifest && !opened->catalog.envelope)
        rc = err_verdict(err, CKPT_E_MISMATCH, "manifest-mismatch",
            "a manifest is pinned, but the file has no envelope (it is %s)", opened->catalog.format);
    contract_free(&court->contract);
    return rc;
}

static void say_what_was_lost(const struct ckpt_options *opt, const struct catalog *catalog) {
    const char *line =
        opt->log.redact ? "what is inside is shown as raw bytes: a damaged chunk keeps it from being parsed"
                        : catalog->lost;
    if (catalog->lost && opt->log.say)
        opt->log.say(opt->log.arg, line);
}

int open_lazily(
    const char *path, const struct ckpt_options *opt, struct opened *opened, struct ckpt_err *err) {
    struct court court = {.opt = opt, .opened = opened};
    const struct unit_judge judge = {lazy_unit, lazy_table, &court};
    int rc = pins_check_manifest(opt->manifest, err);
    if (rc)
        return rc;
    rc = source_open_file(path, &court.file, err);
    if (rc)
        return rc;
    rc = witness_new(court.file, &opened->witness, err);
    if (rc) {
        source_close(court.file);
        return rc;
    }
    opened->source = witness_source(opened->witness);
    rc = parse(&court, &judge, err);
    witness_seal(opened->witness);
    if (!rc)
        say_what_was_lost(opt, &opened->catalog);
    return rc;
}

int open_strictly(const char *path, const struct ckpt_options *opt, struct opened *opened,
    struct strict_tally *ret_tally, struct ckpt_err *err) {
    struct strict_tally tally = {0};
    struct court court = {.opt = opt, .opened = opened, .tally = &tally};
    const struct unit_judge judge = {strict_unit, strict_table, &court};
    int rc = pins_check_manifest(opt->manifest, err);
    if (!rc)
        rc = source_open_file(path, &opened->source, err);
    court.file = opened->source;
    if (!rc)
        rc = parse(&court, &judge, err);
    *ret_tally = tally;
    return rc;
}

void open_undo(struct opened *opened) {
    source_close(opened->source);
    witness_free(opened->witness);
    catalog_free(&opened->catalog);
    *opened = (struct opened){0};
}
