/* SPDX-License-Identifier: Apache-2.0 */
#include "reading.h"

#include "base/err.h"
#include "verify/guarded.h"

/* ---- what was parsed at opening ------------------------------------------------------------------------ */

static int vouch_documents(
    const struct reading *reading, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    const struct catalog *catalog = &reading->ckpt->opened.catalog;
    for (uint32_t i = 0; i < catalog->document_count; i++) {
        const struct document *document = &catalog->documents[i];
        int rc = guard_vouch(reading->ckpt->guard, document->from, cancel, err);
        if (!rc && !document->json)
            rc = err_set(err, CKPT_E_CORRUPT, "it could not be parsed");
        if (rc)
            return err_wrap(err, rc, "%s", document->path);
    }
    return 0;
}

static int vouch_blobs(
    const struct reading *reading, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    const struct catalog *catalog = &reading->ckpt->opened.catalog;
    for (uint32_t i = 0; i < catalog->blob_count; i++) {
        int rc = guard_vouch(reading->ckpt->guard, catalog->blobs[i].from, cancel, err);
        if (rc)
            return err_wrap(err, rc, "%s", catalog->blobs[i].path);
    }
    return 0;
}

static int vouch_groups(
    const struct reading *reading, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    static const char *const names[GROUP_COUNT] = {"tensors", "state", "optimizer"};
    for (int i = 0; i < GROUP_COUNT; i++) {
        const struct group *group = &reading->ckpt->opened.catalog.groups[i];
        int rc = guard_vouch(reading->ckpt->guard, group->index, cancel, err);
        if (!rc && group->damaged)
            rc = err_set(err, CKPT_E_CORRUPT, "it could not be parsed");
        if (rc)
            return err_wrap(err, rc, "the index of %s", names[i]);
    }
    return 0;
}

static int vouch(const struct reading *reading, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    const struct catalog *catalog = &reading->ckpt->opened.catalog;
    int rc = guard_vouch(reading->ckpt->guard, catalog->head, cancel, err);
    if (!rc && catalog->lost) {
        rc = guard_vouch(reading->ckpt->guard, catalog->lost_at, cancel, err);
        if (!rc)
            rc = err_set(err, CKPT_E_CORRUPT, "%s", catalog->lost);
    }
    if (!rc)
        rc = vouch_documents(reading, cancel, err);
    if (!rc)
        rc = vouch_blobs(reading, cancel, err);
    return rc ? rc : vouch_groups(reading, cancel, err);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

int reading_open(const char *path, const struct ckpt_write_options *options, struct reading *ret_reading,
    struct ckpt_err *err) {
    const struct ckpt_cancel *cancel = options ? options->cancel : NULL;
    const struct ckpt_options opening = {.cancel = cancel};
    struct reading reading = {0};
    int rc = ckpt_open(path, &opening, &reading.ckpt, err);
    if (!rc)
        rc = vouch(&reading, cancel, err);
    if (!rc)
        rc = guarded_source(reading.ckpt->guard, reading.ckpt->opened.source, cancel, &reading.verified, err);
    if (rc)
        reading_close(&reading);
    else
        *ret_reading = reading;
    return rc;
}

void reading_close(struct reading *reading) {
    source_close(reading->verified);
    ckpt_close(reading->ckpt);
    *reading = (struct reading){0};
}
