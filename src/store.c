/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a parameter store: the checkpoint is opened here, the rest is pack/store.h. */
#include "pack/store.h"
#include "pack/metadata.h"
#include "reading.h"

#include <stdlib.h>
#include <string.h>

static int copy_metadata(
    const struct catalog *catalog, struct ckpt_pair **ret_pairs, size_t *ret_count, struct ckpt_err *err) {
    struct metadata metadata = {0};
    int rc = 0;
    for (uint32_t i = 0; !rc && i < catalog->document_count; i++) {
        const struct document *document = &catalog->documents[i];
        if (!strcmp(document->path, "metadata.json"))
            rc = metadata_read(&metadata, document->json, document->json_len, NULL, err);
    }
    if (!rc)
        rc = pairs_copy(metadata.pairs, metadata.count, ret_pairs, err);
    if (!rc)
        *ret_count = metadata.count;
    metadata_free(&metadata);
    return rc;
}

static int load(struct ckpt_store *store, const struct reading *reading,
    const struct ckpt_write_options *options, struct ckpt_pair **ret_metadata, size_t *ret_count,
    struct ckpt_err *err) {
    const struct catalog *catalog = &reading->ckpt->opened.catalog;
    struct ckpt_pair *pairs = NULL;
    size_t count = 0;
    int rc = copy_metadata(catalog, &pairs, &count, err);
    if (!rc)
        rc = store_load(store, catalog, reading->verified, options, err);
    if (rc || !ret_metadata || !ret_count) {
        free(pairs);
        return rc;
    }
    *ret_metadata = pairs;
    *ret_count = count;
    return 0;
}

int ckpt_store_load(struct ckpt_store *store, const char *path, const struct ckpt_write_options *options,
    struct ckpt_pair **ret_metadata, size_t *ret_count, struct ckpt_err *err) {
    struct reading reading = {0};
    int rc = reading_open(path, options, &reading, err);
    if (!rc)
        rc = load(store, &reading, options, ret_metadata, ret_count, err);
    reading_close(&reading);
    return rc;
}
