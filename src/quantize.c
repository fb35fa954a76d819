/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_quantize: from an open .oam to a quantized copy of it. */
#include "pack/quantize.h"
#include "pack/oam.h"
#include "reading.h"

static int copy(const struct reading *reading, enum encoding encoding, const char *to,
    const struct ckpt_write_options *options, struct ckpt_err *err) {
    struct model model = {0};
    int rc = model_of_catalog(&reading->ckpt->opened.catalog, reading->verified, &model, err);
    if (!rc)
        rc = quantize_model(&model, encoding, err);
    if (!rc)
        rc = oam_write(to, &model, options, err);
    model_free(&model);
    return rc;
}

int ckpt_quantize(const char *from, enum ckpt_quantization kind, const char *to,
    const struct ckpt_write_options *options, struct ckpt_err *err) {
    struct reading reading = {0};
    if (kind != CKPT_Q4 && kind != CKPT_Q8)
        return err_set(err, CKPT_E_INVAL, "quantization %d is neither CKPT_Q4 nor CKPT_Q8", (int)kind);
    int rc = reading_open(from, options, &reading, err);
    if (rc)
        return rc;
    rc = copy(&reading, kind == CKPT_Q4 ? ENCODING_Q4 : ENCODING_Q8, to, options, err);
    reading_close(&reading);
    return rc;
}
