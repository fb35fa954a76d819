/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/model.h"

#include "base/ovf.h"

#include <inttypes.h>
#include <string.h>

void model_free(struct model *model) {
    arena_free(&model->arena);
    *model = (struct model){0};
}

struct model_tensor *model_add(
    struct model *model, struct model_tensors *tensors, const char *name, size_t name_len) {
    uint64_t count = tensors->count;
    if ((count & (count - 1)) == 0) { /* 0 or a power of two: the items are full */
        uint64_t cap = count ? 2 * count : 1;
        struct model_tensor *grown = arena_alloc(&model->arena, cap, sizeof *grown);
        if (!grown)
            return NULL;
        if (count)
            memcpy(grown, tensors->items, count * sizeof *grown);
        tensors->items = grown;
    }
    const char *copy = name_len <= UINT32_MAX ? arena_text(&model->arena, name, name_len) : NULL;
    if (!copy)
        return NULL;
    struct model_tensor *item = &tensors->items[tensors->count++];
    item->tensor.name = copy;
    item->tensor.name_len = (uint32_t)name_len;
    return item;
}

/* Opens the file, which has to be as long as it was. */
static int open_data(const struct data *data, struct source **ret_file, struct ckpt_err *err) {
    struct source *file;
    int rc = source_open_file(data->path, &file, err);
    if (rc)
        return rc;
    if (file->size == data->file_bytes && ovf_inside(data->off, data->len, file->size)) {
        *ret_file = file;
        return 0;
    }
    rc = err_set(err, CKPT_E_CHANGED, "%s has %" PRIu64 " bytes, before it had %" PRIu64, data->path,
        file->size, data->file_bytes);
    source_close(file);
    return rc;
}

static int put_file(const struct data *data, struct out *out, struct ckpt_err *err) {
    struct source *file;
    int rc = open_data(data, &file, err);
    if (rc)
        return rc;
    rc = out_copy(out, file, data->off, data->len, err);
    source_close(file);
    return rc;
}

int data_read(const struct data *data, uint64_t off, void *buf, size_t len, struct ckpt_err *err) {
    struct source *file = NULL;
    int rc = 0;
    if (data->memory) {
        memcpy(buf, (const uint8_t *)data->memory + off, len);
        return 0;
    }
    if (data->path)
        rc = open_data(data, &file, err);
    if (!rc)
        rc = source_read(file ? file : data->source, data->off + off, buf, len, err);
    source_close(file);
    return rc;
}

int data_put(const struct data *data, struct out *out, struct ckpt_err *err) {
    if (!data->len)
        return 0;
    if (data->path)
        return put_file(data, out, err);
    if (data->source)
        return out_copy(out, data->source, data->off, data->len, err);
    return out_put(out, data->memory, (size_t)data->len, err);
}

int model_tensor_put(const struct model_tensor *item, struct out *out, struct ckpt_err *err) {
    return item->data.put ? item->data.put(item, out, err) : data_put(&item->data, out, err);
}
