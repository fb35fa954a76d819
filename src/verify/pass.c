/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/pass.h"

#include "base/ovf.h"
#include "base/text.h"
#include "verify/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PIECE_BYTES ((uint64_t)512 * 1024) /* small enough for a core's own cache */

bool pass_cancelled(const struct ckpt_cancel *cancel) {
    return cancel && cancel->asked && cancel->asked(cancel->arg);
}

const char *pass_name(const struct unit *unit, char out[PASS_NAME_BYTES]) {
    if (unit->label)
        snprintf(out, PASS_NAME_BYTES, "%s", unit->label);
    else
        snprintf(out, PASS_NAME_BYTES, "chunk %" PRIu64, unit->index);
    return out;
}

static int hash_of(const struct unit *unit, enum hash_kind *ret_kind, struct ckpt_err *err) {
    char name[PASS_NAME_BYTES];
    if (unit->kind != DIGEST_FNV1A64 && unit->kind != DIGEST_SHA256)
        return err_set(err, CKPT_E_INVAL, "%s has no digest", pass_name(unit, name));
    *ret_kind = unit->kind == DIGEST_SHA256 ? HASH_SHA256 : HASH_FNV1A64;
    return 0;
}

int pass_judge(const struct unit *unit, const uint8_t found[32], struct ckpt_err *err) {
    enum hash_kind kind = HASH_FNV1A64;
    int rc = hash_of(unit, &kind, err);
    if (rc)
        return rc;
    size_t len = hash_table[kind].digest_bytes;
    if (found && memcmp(unit->digest, found, len) == 0)
        return 0;
    char name[PASS_NAME_BYTES], words[64], expected[65], computed[65] = "another one";
    snprintf(words, sizeof words, "chunk-mismatch %" PRIu64, unit->index);
    text_hex(unit->digest, len, expected);
    if (found)
        text_hex(found, len, computed);
    bool chunk = kind == HASH_SHA256;
    return err_verdict(err, chunk ? CKPT_E_MISMATCH : CKPT_E_CORRUPT,
        chunk ? words : "section payload checksum mismatch",
        "%s at offset %" PRIu64 ", length %" PRIu64 ": expected %s:%s, found %s", pass_name(unit, name),
        unit->at.off, unit->at.len, hash_table[kind].name, expected, computed);
}

int pass_read_failed(const struct unit *unit, int rc, struct ckpt_err *err) {
    char name[PASS_NAME_BYTES], cause[sizeof err->msg];
    pass_name(unit, name);
    if (rc != CKPT_E_CHANGED)
        return err_wrap(err, rc, "%s at offset %" PRIu64, name, unit->at.off);
    snprintf(cause, sizeof cause, "%s", err ? err->msg : "");
    return err_verdict(err, CKPT_E_CORRUPT, "source ended",
        "%s at offset %" PRIu64 ", length %" PRIu64 ": %s", name, unit->at.off, unit->at.len, cause);
}

/* ---- one unit, streamed ------------------------------------------------------------------------------ */

int pass_begin(struct pass *pass, struct source *source, const struct unit *unit,
    const struct pass_sink *sink, struct ckpt_err *err) {
    enum hash_kind kind = HASH_FNV1A64;
    struct hash_state *hash;
    uint64_t end;
    int rc = hash_of(unit, &kind, err);
    if (!rc && !ovf_add(unit->at.off, unit->at.len, &end))
        rc = err_set(err, CKPT_E_INVAL, "%" PRIu64 " bytes at offset %" PRIu64 " are no range", unit->at.len,
            unit->at.off);
    if (!rc)
        rc = hash_new(kind, &hash, err);
    if (rc)
        return rc;
    *pass = (struct pass){.source = source, .unit = *unit, .hash = hash};
    if (sink)
        pass->sink = *sink;
    return 0;
}

void pass_end(struct pass *pass) {
    hash_free(pass->hash);
    pass->hash = NULL;
}

/* Whole blocks in a piece, so that no block is ever put together from two. */
static size_t piece_bytes(const struct pass *pass) {
    uint64_t block = pass->sink.block ? pass->sink.block_bytes : PIECE_BYTES;
    return (size_t)(block * ovf_max(PIECE_BYTES / block, 1));
}

static void give_blocks(struct pass *pass, const uint8_t *bytes, size_t len) {
    for (size_t at = 0; pass->sink.block && at < len;) {
        size_t take = (size_t)ovf_min(pass->sink.block_bytes, len - at);
        pass->sink.block(pass->sink.arg, pass->blocks++, bytes + at, take);
        at += take;
    }
}

static int take_piece(
    struct pass *pass, struct feed *feed, const struct ckpt_progress *progress, struct ckpt_err *err) {
    const void *bytes;
    size_t len;
    int rc = feed_next(feed, &bytes, &len, err);
    if (rc)
        return pass_read_failed(&pass->unit, rc, err);
    hash_update(pass->hash, bytes, len);
    give_blocks(pass, bytes, len);
    pass->done += len;
    if (progress && progress->tell)
        progress->tell(progress->arg, pass->done, pass->unit.at.len);
    return 0;
}

static int stream(struct pass *pass, const struct ckpt_cancel *cancel, const struct ckpt_progress *progress,
    struct ckpt_err *err) {
    struct range at = pass->unit.at;
    struct feed *feed;
    int rc = feed_open(pass->source, at.off + pass->done, at.len - pass->done, piece_bytes(pass), &feed, err);
    if (rc)
        return rc;
    while (!rc && pass->done < at.len)
        rc = pass_cancelled(cancel) ? err_set(err, CKPT_E_INTR, "interrupted")
                                    : take_piece(pass, feed, progress, err);
    feed_close(feed);
    return rc;
}

int pass_run(struct pass *pass, uint8_t found[32], const struct ckpt_cancel *cancel,
    const struct ckpt_progress *progress, struct ckpt_err *err) {
    int rc = stream(pass, cancel, progress, err);
    if (rc)
        return rc;
    hash_final(pass->hash, found);
    rc = pass_judge(&pass->unit, found, err);
    pass->differs = rc != 0;
    return rc;
}

int pass_unit(struct source *source, const struct unit *unit, const struct pass_sink *sink, uint8_t found[32],
    const struct ckpt_cancel *cancel, const struct ckpt_progress *progress, struct ckpt_err *err) {
    struct pass pass;
    int rc = pass_begin(&pass, source, unit, sink, err);
    if (rc)
        return rc;
    rc = pass_run(&pass, found, cancel, progress, err);
    pass_end(&pass);
    return rc;
}

/* ---- units at hand ----------------------------------------------------------------------------------- */

/* One state serves all units of a kind: for small ones, making it costs more than hashing. */
struct bench {
    struct hash_state *hash;
    enum hash_kind kind;
};

static int bench_for(struct bench *bench, const struct unit *unit, struct ckpt_err *err) {
    enum hash_kind kind = HASH_FNV1A64;
    int rc = hash_of(unit, &kind, err);
    if (rc)
        return rc;
    if (bench->hash && bench->kind == kind) {
        hash_reset(bench->hash);
        return 0;
    }
    hash_free(bench->hash);
    *bench = (struct bench){.kind = kind};
    return hash_new(kind, &bench->hash, err);
}

int pass_bytes(const struct unit_table *table, uint64_t first, uint64_t count, const void *bytes,
    const struct pass_tell *tell, struct ckpt_err *err) {
    struct bench bench = {0};
    const uint8_t *at = bytes;
    int bad = 0;
    for (uint64_t i = first; i - first < count; i++) {
        struct unit unit = unit_get(table, i);
        uint8_t found[32] = {0};
        int rc = bench_for(&bench, &unit, bad ? NULL : err);
        if (rc) {
            bad = bad ? bad : rc;
            break;
        }
        hash_update(bench.hash, at, (size_t)unit.at.len);
        hash_final(bench.hash, found);
        rc = pass_judge(&unit, found, bad ? NULL : err);
        if (tell)
            tell->outcome(tell->arg, i, rc == 0, found);
        bad = bad ? bad : rc;
        at += unit.at.len;
    }
    hash_free(bench.hash);
    return bad;
}
