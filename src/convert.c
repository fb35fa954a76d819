/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_convert: the checkpoint is opened here, the rest is pack/convert.h. */
#include "pack/convert.h"

#include "reading.h"

#include <string.h>

typedef int convert_to(struct convert *convert, const char *path, struct ckpt_err *err);

static convert_to *find_target(const char *path) {
    static const struct {
        const char *ending;
        convert_to *to;
    } targets[] = {{".oam", convert_to_oam}, {".safetensors", convert_to_safetensors}};
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        size_t ending = strlen(targets[i].ending);
        if (len > ending && !strcmp(path + len - ending, targets[i].ending))
            return targets[i].to;
    }
    return NULL;
}

/* An envelope may hold anything; what does not look like a checkpoint may be a damaged one. */
static int check_content(const struct reading *reading, struct ckpt_err *err) {
    const struct catalog *catalog = &reading->ckpt->opened.catalog;
    uint8_t first;
    int rc = 0;
    if (strcmp(catalog->format, "raw") != 0)
        return 0;
    if (catalog->envelope->payload_bytes)
        rc = source_read(reading->verified, catalog->envelope->header_bytes, &first, 1, err);
    return rc ? rc : err_set(err, CKPT_E_FORMAT, "the envelope's payload is no checkpoint");
}

int ckpt_convert(const char *from, const char *to, const struct ckpt_convert *how,
    const struct ckpt_write_options *options, struct ckpt_err *err) {
    static const struct ckpt_convert strictly = {0};
    struct reading reading = {0};
    convert_to *target = find_target(to);
    if (!target)
        return err_set(err, CKPT_E_INVAL, "%s: a name that ends with .oam or .safetensors is wanted", to);
    int rc = reading_open(from, options, &reading, err);
    if (rc)
        return rc;
    struct convert convert = {
        .catalog = &reading.ckpt->opened.catalog,
        .source = reading.verified,
        .how = how ? how : &strictly,
        .options = options,
    };
    rc = check_content(&reading, err);
    if (!rc)
        rc = target(&convert, to, err);
    reading_close(&reading);
    return rc;
}
