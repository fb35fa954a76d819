/* SPDX-License-Identifier: Apache-2.0 */
#include "open.h"

#include "base/buf.h"
#include "base/ovf.h"
#include "base/text.h"
#include "format/envelope.h"
#include "hash/hash.h"
#include "verify/pass.h"

#include <string.h>

#define CONTRACT_BYTES_MAX ((uint64_t)1 << 20)
#define PIN_PREFIX "sha256:"

/* ---- contracts --------------------------------------------------------------------------------------- */

static int read_whole(const char *path, uint64_t max, struct buf *text, struct ckpt_err *err) {
    struct source *source;
    int rc = source_open_file(path, &source, err);
    if (rc)
        return rc;
    char piece[4096];
    uint64_t size = source->size;
    if (size > max)
        rc = err_set(err, CKPT_E_LIMIT, "%s: %llu bytes, a contract has at most %llu", path,
            (unsigned long long)size, (unsigned long long)max);
    for (uint64_t at = 0; !rc && at < size; at += sizeof piece) {
        size_t len = (size_t)ovf_min(sizeof piece, size - at);
        rc = source_read(source, at, piece, len, err);
        if (!rc)
            buf_put(text, piece, len);
    }
    if (!rc && !buf_cstr(text))
        rc = err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    source_close(source);
    return rc;
}

static int load_contract(const char *path, struct contract *contract, struct ckpt_err *err) {
    struct buf text = {0};
    int rc = read_whole(path, CONTRACT_BYTES_MAX, &text, err);
    if (!rc)
        rc = contract_parse(text.bytes, text.len, contract, err);
    for (int i = 0; !rc && i < 4; i++)
        rc = hash_bytes(
            HASH_SHA256, contract->identity[i], contract->identity_len[i], contract->identity_sha256[i], err);
    buf_free(&text);
    bool none = rc == CKPT_E_FORMAT || rc == CKPT_E_LIMIT; /* the user's mistake, not the checkpoint's */
    if (err && none)
        rc = err->code = CKPT_E_INVAL;
    return rc ? err_wrap(err, rc, "contract %s", path) : 0;
}

/* ---- the judges -------------------------------------------------------------------------------------- */

struct court {
    const struct ckpt_options *opt;
    struct contract contract; /* when opt names one */
    struct opened *opened;
    struct source *file;        /* what to hash: under the witness, whose records are for what was parsed */
    struct strict_tally *tally; /* NULL: lazy */
};

/* The pinned manifest, and what a contract does not look at but a file without one must obey. */
static int check_header(struct court *court, struct ckpt_err *err) {
    struct envelope *envelope = court->opened->catalog.envelope;
    int rc = hash_bytes(HASH_SHA256, envelope->header, envelope->header_bytes, envelope->manifest, err);
    if (rc)
        return rc;
    if (court->opt->contract) /* the file was judged before; this is the header that was parsed */
        rc = envelope_judge_header(envelope->header, &court->contract, err);
    if (rc)
        return rc;
    if (court->opt->manifest) {
        char found[65];
        text_hex(envelope->manifest, 32, found);
        const char *pinned = court->opt->manifest + strlen(PIN_PREFIX);
        uint8_t wanted[32];
        if (!text_unhex(pinned, 32, wanted) || memcmp(wanted, envelope->manifest, 32) != 0)
            return err_verdict(err, CKPT_E_MISMATCH, "manifest-mismatch",
                "the header hashes to sha256:%s, pinned is sha256:%s", found, pinned);
    }
    bool thorough = court->tally || court->opt->verify == CKPT_VERIFY_FULL;
    if (thorough && !court->opt->contract && envelope->stray)
        return err_verdict(err, CKPT_E_MISMATCH, "layout",
            "nonzero byte at offset %llu, between the last digest and the end of the header",
            (unsigned long long)envelope->stray);
    return 0;
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

static int check_pins(const struct ckpt_options *opt, struct ckpt_err *err) {
    uint8_t digest[32];
    if (opt->manifest && (strncmp(opt->manifest, PIN_PREFIX, strlen(PIN_PREFIX)) != 0 ||
                             !text_unhex(opt->manifest + strlen(PIN_PREFIX), 32, digest)))
        return err_set(
            err, CKPT_E_INVAL, "manifest '%s': sha256: and 64 hexadecimal digits are wanted", opt->manifest);
    return 0;
}

static int parse(struct court *court, const struct unit_judge *judge, struct ckpt_err *err) {
    struct opened *opened = court->opened;
    int rc = court->opt->contract ? load_contract(court->opt->contract, &court->contract, err) : 0;
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
    int rc = check_pins(opt, err);
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
    int rc = check_pins(opt, err);
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
