/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/document.h"

#include "base/quote.h"
#include "pack/float_text.h"
#include "pack/nans.h"
#include "pack/records.h"

#include <string.h>

static int read_number(
    struct json *json, const char *what, struct document_number *ret_number, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    uint64_t value;
    if (event != JSON_NUMBER || !json_u64(json, &value))
        return json_wanted(json, event, what, err);
    *ret_number = (struct document_number){true, value};
    return 0;
}

/* ---- config ---------------------------------------------------------------------------------------------
 */

struct config_reading {
    struct model_config *config;
    struct document_arch arch;
    const char *text;
};

/* The text of the value itself: it is what the file had, to the byte. */
static int read_arch(void *arg, const struct field *field, struct json *json, struct ckpt_err *err) {
    (void)field;
    struct config_reading *reading = arg;
    enum json_event event = json_next(json);
    size_t from = json_token(json);
    event = json_skip(json, event);
    if (event == JSON_ERROR)
        return json_wanted(json, event, "", err);
    if (event != JSON_NULL)
        reading->arch.json = (struct model_text){reading->text + from, json_offset(json) - from};
    return 0;
}

/* fields_read writes to a config alone: the length goes beside it by a row of its own. */
static int read_config_member(void *arg, const struct field *field, struct json *json, struct ckpt_err *err) {
    struct config_reading *reading = arg;
    if (!strcmp(field->name, "arch_config"))
        return read_arch(arg, field, json, err);
    return read_number(json, "a number of bytes", &reading->arch.bytes, err);
}

int document_config(
    struct model *model, const char *json, size_t len, struct document_arch *ret_arch, struct ckpt_err *err) {
    static const struct field table[] = {
        CONFIG_FIELDS, {"arch_config", FIELD_CUSTOM, 0, true}, {"arch_config_bytes", FIELD_CUSTOM, 0, true}};
    struct config_reading reading = {.text = json};
    const struct fields fields = {.table = table,
        .count = sizeof table / sizeof *table,
        .open = true,
        .into = &model->config,
        .arena = &model->arena,
        .custom = read_config_member,
        .arg = &reading};
    int rc = fields_parse(&fields, json, len, err);
    if (!rc)
        *ret_arch = reading.arch;
    return rc;
}

/* ---- NaNs -----------------------------------------------------------------------------------------------
 */

/* float32 fields of a section, one after another from `off` on. */
struct floats {
    uint32_t *const *bits;
    size_t count, off;
};

#define FLOATS_MAX 5

static int take_nans(const struct floats *floats, const struct data *section, struct ckpt_err *err) {
    uint8_t bytes[4 * FLOATS_MAX];
    bool any = false;
    for (size_t i = 0; i < floats->count; i++)
        any |= *floats->bits[i] == FLOAT_NAN;
    if (!any || !section || section->len < floats->off + 4 * floats->count)
        return 0;
    int rc = data_read(section, floats->off, bytes, 4 * floats->count, err);
    for (size_t i = 0; !rc && i < floats->count; i++) {
        const uint8_t *at = bytes + 4 * i;
        uint32_t was = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        if (*floats->bits[i] == FLOAT_NAN && float_is_nan(was))
            *floats->bits[i] = was;
    }
    return rc;
}

/* ---- progress and optimizer -----------------------------------------------------------------------------
 */

int document_progress(
    struct model *model, const char *json, size_t len, const struct data *section, struct ckpt_err *err) {
    static const struct field table[] = {PROGRESS_FIELDS};
    struct model_progress *progress = &model->progress;
    const struct fields fields = {.table = table,
        .count = sizeof table / sizeof *table,
        .open = true,
        .into = progress,
        .arena = &model->arena};
    uint32_t *const bits[] = {&progress->learning_rate, &progress->best_metric};
    const struct floats floats = {bits, sizeof bits / sizeof *bits, NANS_PROGRESS_OFFSET};
    int rc = fields_parse(&fields, json, len, err);
    return rc ? rc : take_nans(&floats, section, err);
}

static int read_parameters(void *arg, const struct field *field, struct json *json, struct ckpt_err *err) {
    (void)field;
    return read_number(json, "a number of them", arg, err);
}

int document_optimizer(struct model *model, const char *json, size_t len, const struct data *section,
    struct document_number *ret_parameters, struct ckpt_err *err) {
    static const struct field table[] = {OPTIMIZER_FIELDS, {"parameters", FIELD_CUSTOM, 0, true}};
    struct model_optimizer *optimizer = &model->optimizer;
    struct document_number parameters = {0};
    const struct fields fields = {.table = table,
        .count = sizeof table / sizeof *table,
        .open = true,
        .into = optimizer,
        .arena = &model->arena,
        .custom = read_parameters,
        .arg = &parameters};
    uint32_t *const bits[] = {&optimizer->learning_rate, &optimizer->beta1, &optimizer->beta2,
        &optimizer->epsilon, &optimizer->weight_decay};
    const struct floats floats = {bits, sizeof bits / sizeof *bits, NANS_OPTIMIZER_OFFSET};
    int rc = fields_parse(&fields, json, len, err);
    if (!rc)
        rc = take_nans(&floats, section, err);
    if (rc)
        return rc;
    optimizer->present = true;
    *ret_parameters = parameters;
    return 0;
}

/* ---- tensors --------------------------------------------------------------------------------------------
 */

struct tensors_reading {
    struct model *model;
    document_find *find;
    void *arg;
};

struct row_reading {
    struct model *model;
    struct model_tensor *item;
    struct document_files files;
};

/* A path, or null. */
static int read_path(
    struct json *json, struct arena *arena, struct model_text *ret_text, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event == JSON_NULL)
        return 0;
    if (event != JSON_STRING)
        return json_wanted(json, event, "a path or null", err);
    const char *copy = arena_text(arena, json->value, json->value_len);
    *ret_text = (struct model_text){copy, json->value_len};
    return copy ? 0 : err_set(err, CKPT_E_NOMEM, "no memory for a path of %zu bytes", json->value_len);
}

static int read_row_member(void *arg, const struct field *field, struct json *json, struct ckpt_err *err) {
    struct row_reading *row = arg;
    if (!strcmp(field->name, "shape"))
        return record_shape(json, &row->model->arena, row->item, err);
    bool npy = !strcmp(field->name, "npy");
    return read_path(json, &row->model->arena, npy ? &row->files.npy : &row->files.raw, err);
}

static int read_row(const struct tensors_reading *reading, struct model_tensor *item, struct json *json,
    struct ckpt_err *err) {
    static const struct field table[] = {
        TENSOR_FIELDS, {"npy", FIELD_CUSTOM, 0, true}, {"raw", FIELD_CUSTOM, 0, true}};
    struct row_reading row = {reading->model, item, {{0}, {0}}};
    const struct fields fields = {.table = table,
        .count = sizeof table / sizeof *table,
        .open = true,
        .into = item,
        .arena = &reading->model->arena,
        .custom = read_row_member,
        .arg = &row};
    int rc = fields_read(&fields, json, err);
    return rc ? rc : reading->find(reading->arg, item, &row.files, err);
}

/* json is at the key. */
static int read_tensor(const struct tensors_reading *reading, struct model_tensors *group, struct json *json,
    struct ckpt_err *err) {
    struct quoted name;
    struct model_tensor *item = model_add(reading->model, group, json->value, json->value_len);
    if (!item)
        return err_set(err, CKPT_E_NOMEM, "no memory for %llu tensors", (unsigned long long)group->count);
    int rc = read_row(reading, item, json, err);
    return rc ? err_wrap(err, rc, "%s", quote(&name, item->tensor.name, item->tensor.name_len)) : 0;
}

static int read_group(void *arg, const struct field *field, struct json *json, struct ckpt_err *err) {
    const struct tensors_reading *reading = arg;
    bool state = !strcmp(field->name, "state");
    struct model_tensors *group = state ? &reading->model->state : &reading->model->weights;
    enum json_event event = json_next(json);
    if (event != JSON_OBJECT)
        return json_wanted(json, event, "an object", err);
    int rc = 0;
    while (!rc && (event = json_next(json)) == JSON_KEY)
        rc = read_tensor(reading, group, json, err);
    if (!rc && event != JSON_OBJECT_END)
        rc = json_wanted(json, event, "a tensor", err);
    return rc;
}

int document_tensors(
    struct model *model, const char *json, size_t len, document_find *find, void *arg, struct ckpt_err *err) {
    static const struct field table[] = {
        {"tensors", FIELD_CUSTOM, 0, false}, {"state", FIELD_CUSTOM, 0, true}};
    struct tensors_reading reading = {model, find, arg};
    const struct fields fields = {.table = table,
        .count = sizeof table / sizeof *table,
        .open = true,
        .into = model,
        .arena = &model->arena,
        .custom = read_group,
        .arg = &reading};
    return fields_parse(&fields, json, len, err);
}
