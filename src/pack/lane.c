/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/lane.h"

#include "dequant/values.h"

#include <stdlib.h>

int lane_open(struct source *source, struct lane *ret_lane, struct ckpt_err *err) {
    struct lane lane = {
        .source = source, .stored = malloc(LANE_BYTES), .values = malloc(LANE_ELEMENTS * sizeof(float))};
    if (!lane.stored || !lane.values) {
        lane_close(&lane);
        return err_set(err, CKPT_E_NOMEM, "no memory for a piece of a tensor");
    }
    *ret_lane = lane;
    return 0;
}

void lane_close(struct lane *lane) {
    free(lane->stored);
    free(lane->values);
    *lane = (struct lane){0};
}

void lane_take(struct lane *lane, const struct catalog *catalog, const struct tensor *tensor) {
    lane->tensor = tensor;
    lane->base = tensor_range(catalog, tensor).off;
}

static bool is_converted(const struct tensor *tensor) {
    return tensor->encoding != ENCODING_DENSE || dtype_table[tensor->dtype].widens;
}

bool lane_has_values(const struct tensor *tensor) {
    return is_converted(tensor) || dtype_table[tensor->dtype].descr;
}

enum dtype lane_dtype(const struct tensor *tensor) {
    return is_converted(tensor) ? DTYPE_F32 : (enum dtype)tensor->dtype;
}

int lane_load(struct lane *lane, uint64_t off, size_t len, struct ckpt_err *err) {
    return source_read(lane->source, lane->base + off, lane->stored, len, err);
}

const uint8_t *lane_widen(struct lane *lane, uint64_t first, uint64_t count) {
    if (!is_converted(lane->tensor))
        return lane->stored;
    struct values values = values_of(lane->tensor, first, count);
    values_convert(&values, lane->stored, NULL, 0, count, lane->values);
    return lane->values;
}

int lane_values(
    struct lane *lane, uint64_t first, uint64_t count, const uint8_t **ret_values, struct ckpt_err *err) {
    if (lane->tensor->encoding == ENCODING_DENSE) {
        uint64_t width = dtype_table[lane->tensor->dtype].bits / 8;
        int rc = lane_load(lane, first * width, (size_t)(count * width), err);
        if (!rc)
            *ret_values = lane_widen(lane, first, count);
        return rc;
    }
    struct values values = values_of(lane->tensor, first, count);
    uint8_t *scales = lane->stored + values.ints.len;
    int rc = lane_load(lane, values.ints.off, (size_t)values.ints.len, err);
    if (!rc)
        rc =
            source_read(lane->source, lane->base + values.scales.off, scales, (size_t)values.scales.len, err);
    if (rc)
        return rc;
    values_convert(&values, lane->stored, scales, 0, count, lane->values);
    *ret_values = lane->values;
    return 0;
}
