/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/twin.h"

#include "base/ovf.h"
#include "dequant/values.h"
#include "pack/float_text.h"
#include "pack/npy.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PIECE ((uint64_t)64 * 1024) /* elements; a multiple of a block's */
#define WIDEST 16                   /* bytes of an element */

struct twin {
    const struct tensor *tensor;
    const struct data *stored;
    struct data array;
    bool derived;   /* the array has float32 in the place of the stored elements */
    uint8_t *bytes; /* a piece of each: PIECE * WIDEST bytes */
    uint8_t *elements;
    uint8_t *scales;
    uint8_t *values;
};

static unsigned width_of(const struct twin *twin) {
    return twin->derived ? 4 : dtype_table[twin->tensor->dtype].bits / 8;
}

/* What the array should hold from element `first` on, in twin->values. */
static int derive(struct twin *twin, uint64_t first, uint64_t count, struct ckpt_err *err) {
    const struct values values = values_of(twin->tensor, first, count);
    int rc = data_read(twin->stored, values.ints.off, twin->bytes, (size_t)values.ints.len, err);
    if (!rc && values.scales.len)
        rc = data_read(twin->stored, values.scales.off, twin->scales, (size_t)values.scales.len, err);
    if (!rc)
        values_convert(&values, twin->bytes, twin->scales, 0, count, twin->values);
    return rc;
}

static int load(struct twin *twin, uint64_t first, uint64_t count, struct ckpt_err *err) {
    const unsigned width = width_of(twin);
    int rc = data_read(&twin->array, first * width, twin->elements, (size_t)count * width, err);
    if (rc || twin->derived)
        return rc ? rc : derive(twin, first, count, err);
    return data_read(twin->stored, first * width, twin->values, (size_t)count * width, err);
}

/* Of computed values, which NaN stands for a NaN is free. */
static bool same(const struct twin *twin, uint64_t index) {
    const unsigned width = width_of(twin);
    const uint8_t *a = twin->elements + index * width, *b = twin->values + index * width;
    uint32_t left, right;
    if (!memcmp(a, b, width))
        return true;
    if (!twin->derived)
        return false;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return float_is_nan(le32toh(left)) && float_is_nan(le32toh(right));
}

static int compare(struct twin *twin, uint64_t first, uint64_t count, struct ckpt_err *err) {
    int rc = load(twin, first, count, err);
    if (rc || !memcmp(twin->elements, twin->values, (size_t)count * width_of(twin)))
        return rc;
    for (uint64_t i = 0; i < count; i++)
        if (!same(twin, i))
            return err_set(err, CKPT_E_INVAL,
                "element %" PRIu64 " of %" PRIu64
                " in %s is not what %s holds: delete the file that is not meant",
                first + i, twin->tensor->elements, twin->array.path, twin->stored->path);
    return 0;
}

static int compare_all(struct twin *twin, const struct ckpt_write_options *options, struct ckpt_err *err) {
    int rc = 0;
    for (uint64_t at = 0, count; !rc && at < twin->tensor->elements; at += count) {
        count = ovf_min(PIECE, twin->tensor->elements - at);
        rc = out_stop(options, err);
        if (!rc)
            rc = compare(twin, at, count, err);
    }
    return rc;
}

/* The array as a tensor. */
static int open_array(struct twin *twin, const char *npy, struct ckpt_err *err) {
    struct tensor view = *twin->tensor;
    if (twin->derived) {
        view.dtype = DTYPE_F32;
        view.encoding = ENCODING_DENSE;
    }
    int rc = npy_data(npy, &view, &twin->array, err);
    uint64_t bytes = view.elements * width_of(twin);
    if (!rc && twin->array.len != bytes)
        rc = err_set(err, CKPT_E_INVAL, "%s has %" PRIu64 " bytes of elements, not %" PRIu64, npy,
            twin->array.len, bytes);
    return rc;
}

static int check(struct twin *twin, const struct ckpt_write_options *options, struct ckpt_err *err) {
    uint8_t *memory = malloc(4 * PIECE * WIDEST);
    if (!memory)
        return err_set(err, CKPT_E_NOMEM, "no memory to compare %s", twin->array.path);
    twin->bytes = memory;
    twin->elements = memory + PIECE * WIDEST;
    twin->scales = memory + 2 * PIECE * WIDEST;
    twin->values = memory + 3 * PIECE * WIDEST;
    int rc = compare_all(twin, options, err);
    free(memory);
    return rc;
}

int twin_check(const struct model_tensor *item, const char *npy, const struct ckpt_write_options *options,
    struct ckpt_err *err) {
    struct tensor tensor = item->tensor;
    uint64_t bytes;
    tensor.size = item->data.len;
    if (tensor.dtype >= DTYPE_COUNT || tensor_check(&tensor, &bytes) != TENSOR_OK)
        return 0;
    bool derived = tensor.encoding != ENCODING_DENSE || dtype_table[tensor.dtype].widens;
    struct twin twin = {.tensor = &tensor, .stored = &item->data, .derived = derived};
    int rc = open_array(&twin, npy, err);
    return rc ? rc : check(&twin, options, err);
}
