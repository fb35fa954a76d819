/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_verify: a strict opening and its verdict. */
#include "base/err.h"
#include "base/text.h"
#include "open.h"

#include <stdio.h>
#include <string.h>

static void describe(const struct catalog *catalog, bool judged, struct ckpt_verdict *verdict) {
    snprintf(verdict->format, sizeof verdict->format, "%s", catalog->format ? catalog->format : "");
    enum digest_kind kind = catalog_digest(catalog);
    if (judged || kind != DIGEST_NONE) /* a file that was not parsed to its end may have digests */
        snprintf(verdict->strength, sizeof verdict->strength, "%s", digest_table[kind].name);
    if (catalog->envelope)
        text_hex(catalog->envelope->manifest, 32, verdict->manifest);
}

/* The first line for an outcome; "" when the file could not be judged. */
static void pronounce(int rc, bool enveloped, const struct ckpt_err *fault, struct ckpt_verdict *verdict) {
    if (!rc)
        snprintf(verdict->line, sizeof verdict->line, "%s", enveloped ? "accepted" : "ok");
    else if (rc == CKPT_E_MISMATCH)
        snprintf(verdict->line, sizeof verdict->line, "%s", fault->words);
    else if (rc == CKPT_E_CORRUPT || rc == CKPT_E_FORMAT)
        snprintf(verdict->line, sizeof verdict->line, "corrupt: %s", fault->words);
}

int ckpt_verify(const char *path, const struct ckpt_options *opt, struct ckpt_verdict *ret_verdict,
    struct ckpt_err *err) {
    static const struct ckpt_options defaults = {0};
    struct opened opened = {0};
    struct strict_tally tally = {0};
    struct ckpt_err fault = {0};
    int rc = open_strictly(path, opt ? opt : &defaults, &opened, &tally, &fault);
    struct ckpt_verdict verdict = {.units = tally.units, .bytes = tally.bytes};
    describe(&opened.catalog, !rc, &verdict);
    pronounce(rc, opened.catalog.envelope != NULL, &fault, &verdict);
    open_undo(&opened);
    *ret_verdict = verdict;
    if (rc && err)
        *err = fault;
    return rc;
}
