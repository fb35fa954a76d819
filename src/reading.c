/* SPDX-License-Identifier: Apache-2.0 */
#include "reading.h"

#include "base/err.h"
#include "verify/guarded.h"

/* ---- what was parsed at opening ------------------------------------------------------------------------ */

struct vouching {
    struct ckpt *ckpt;
    struct source *by; /* NULL: the guard */
    const struct ckpt_cancel *cancel;
};

static int vouch_range(const struct vouching *vouching, struct range range, struct ckpt_err *err) {
    struct guard *guard = vouching->ckpt->guard;
    return vouching->by ? guard_vouch_by(guard, range, vouching->by, err)
                        : guard_vouch(guard, range, vouching->cancel, err);
}

static int vouch_documents(const struct vouching *vouching, struct ckpt_err *err) {
    const struct catalog *catalog = &vouching->ckpt->opened.catalog;
    for (uint32_t i = 0; i < catalog->document_count; i++) {
        const struct document *document = &catalog->documents[i];
        int rc = vouch_range(vouching, document->from, err);
        if (!rc && !document->json)
            rc = err_set(err, CKPT_E_CORRUPT, "it could not be parsed");
        if (rc)
            return err_wrap(err, rc, "%s", document->path);
    }
    return 0;
}

static int vouch_blobs(const struct vouching *vouching, struct ckpt_err *err) {
    const struct catalog *catalog = &vouching->ckpt->opened.catalog;
    for (uint32_t i = 0; i < catalog->blob_count; i++) {
        int rc = vouch_range(vouching, catalog->blobs[i].from, err);
        if (rc)
            return err_wrap(err, rc, "%s", catalog->blobs[i].path);
    }
    return 0;
}

static int vouch_groups(const struct vouching *vouching, struct ckpt_err *err) {
    static const char *const names[GROUP_COUNT] = {"tensors", "state", "optimizer"};
    for (int i = 0; i < GROUP_COUNT; i++) {
        const struct group *group = &vouching->ckpt->opened.catalog.groups[i];
        int rc = vouch_range(vouching, group->index, err);
        if (!rc && group->damaged)
            rc = err_set(err, CKPT_E_CORRUPT, "it could not be parsed");
        if (rc)
            return err_wrap(err, rc, "the index of %s", names[i]);
    }
    return 0;
}

static int vouch(const struct vouching *vouching, struct ckpt_err *err) {
    const struct catalog *catalog = &vouching->ckpt->opened.catalog;
    int rc = vouch_range(vouching, catalog->head, err);
    if (!rc && catalog->lost) {
        rc = vouch_range(vouching, catalog->lost_at, err);
        if (!rc)
            rc = err_set(err, CKPT_E_CORRUPT, "%s", catalog->lost);
    }
    if (!rc)
        rc = vouch_documents(vouching, err);
    if (!rc)
        rc = vouch_blobs(vouching, err);
    return rc ? rc : vouch_groups(vouching, err);
}

int reading_vouch(struct ckpt *ckpt, struct source *by, struct ckpt_err *err) {
    return vouch(&(struct vouching){ckpt, by, NULL}, err);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

int reading_open(const char *path, const struct ckpt_write_options *options, struct reading *ret_reading,
    struct ckpt_err *err) {
    const struct ckpt_cancel *cancel = options ? options->cancel : NULL;
    const struct ckpt_options opening = {.cancel = cancel};
    struct reading reading = {0};
    int rc = ckpt_open(path, &opening, &reading.ckpt, err);
    if (!rc)
        rc = vouch(&(struct vouching){reading.ckpt, NULL, cancel}, err);
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
