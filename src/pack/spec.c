/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/spec.h"

#include "base/quote.h"
#include "base/text.h"
#include "format/oam_layout.h"
#include "pack/files.h"
#include "pack/records.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct spec {
    struct model *model;
    char *folder; /* where the description stands */
};

/* ---- data -----------------------------------------------------------------------------------------------
 */

static int read_hex(struct json *json, struct arena *arena, struct data *data, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event != JSON_STRING)
        return json_wanted(json, event, "a string of hexadecimal digits", err);
    size_t len = json->value_len / 2;
    char *digits = arena_text(arena, json->value, json->value_len);
    uint8_t *bytes = arena_alloc(arena, 1, len + 1);
    if (!digits || !bytes)
        return err_set(err, CKPT_E_NOMEM, "no memory for %zu bytes", len);
    if (json->value_len % 2 || memchr(digits, 0, json->value_len) || !text_unhex(digits, len, bytes))
        return err_set(err, CKPT_E_INVAL, "%zu characters that are no bytes in hexadecimal", json->value_len);
    *data = (struct data){.len = len, .memory = bytes};
    return 0;
}

struct data_reading {
    struct arena *arena;
    struct data *data;
};

static int read_hex_member(void *arg, const struct field *field, struct json *json, struct ckpt_err *err) {
    (void)field;
    const struct data_reading *reading = arg;
    return read_hex(json, reading->arena, reading->data, err);
}

static int read_inline(struct json *json, struct arena *arena, struct data *data, struct ckpt_err *err) {
    static const struct field table[] = {{"hex", FIELD_CUSTOM, 0, false}};
    struct data_reading reading = {arena, data};
    const struct fields fields = {.table = table,
        .count = 1,
        .into = &reading,
        .arena = arena,
        .custom = read_hex_member,
        .arg = &reading};
    return fields_members(&fields, json, err);
}

static int read_file(const struct spec *spec, struct json *json, struct data *data, struct ckpt_err *err) {
    char *path;
    struct model_text name = {arena_text(&spec->model->arena, json->value, json->value_len), json->value_len};
    if (!name.text)
        return err_set(err, CKPT_E_NOMEM, "no memory for a path of %zu bytes", name.len);
    int rc = files_path(spec->folder, &name, &spec->model->arena, &path, err);
    return rc ? rc : files_data(path, data, err);
}

/* The name of a file, or {"hex": "..."}. */
static int read_data(const struct spec *spec, struct json *json, struct data *data, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event == JSON_OBJECT)
        return read_inline(json, &spec->model->arena, data, err);
    if (event == JSON_STRING)
        return read_file(spec, json, data, err);
    return json_wanted(json, event, "the name of a file or {\"hex\": \"...\"}", err);
}

/* ---- config, optimizer, progress ------------------------------------------------------------------------
 */

static int read_arch(void *arg, const struct field *field, struct json *json, struct ckpt_err *err) {
    (void)field;
    const struct spec *spec = arg;
    return read_data(spec, json, &spec->model->config.arch_config, err);
}

static int read_config(struct spec *spec, struct json *json, struct ckpt_err *err) {
    static const struct field table[] = {CONFIG_FIELDS, {"arch_config", FIELD_CUSTOM, 0, true}};
    const struct fields fields = {.table = table,
        .count = sizeof table / sizeof *table,
        .into = &spec->model->config,
        .arena = &spec->model->arena,
        .custom = read_arch,
        .arg = spec};
    return fields_read(&fields, json, err);
}

static int read_progress(struct spec *spec, struct json *json, struct ckpt_err *err) {
    static const struct field table[] = {PROGRESS_FIELDS};
    const struct fields fields = {.table = table,
        .count = sizeof table / sizeof *table,
        .into = &spec->model->progress,
        .arena = &spec->model->arena};
    return fields_read(&fields, json, err);
}

static int read_moment(void *arg, const struct field *field, struct json *json, struct ckpt_err *err) {
    const struct spec *spec = arg;
    bool second = !strcmp(field->name, "second_moment");
    return read_data(spec, json, &spec->model->optimizer.moments[second], err);
}

static int read_optimizer(struct spec *spec, struct json *json, struct ckpt_err *err) {
    static const struct field table[] = {
        OPTIMIZER_FIELDS, {"first_moment", FIELD_CUSTOM, 0, false}, {"second_moment", FIELD_CUSTOM, 0, true}};
    const struct fields fields = {.table = table,
        .count = sizeof table / sizeof *table,
        .into = &spec->model->optimizer,
        .arena = &spec->model->arena,
        .custom = read_moment,
        .arg = spec};
    enum json_event event = json_next(json);
    if (event == JSON_NULL)
        return 0;
    if (event != JSON_OBJECT)
        return json_wanted(json, event, "an object or null", err);
    spec->model->optimizer.present = true;
    return fields_members(&fields, json, err);
}

/* ---- tensors --------------------------------------------------------------------------------------------
 */

struct row_reading {
    const struct spec *spec;
    struct model_tensor *item;
};

static int read_row_member(void *arg, const struct field *field, struct json *json, struct ckpt_err *err) {
    const struct row_reading *row = arg;
    struct arena *arena = &row->spec->model->arena;
    if (!strcmp(field->name, "shape"))
        return record_shape(json, arena, row->item, err);
    if (!strcmp(field->name, "data"))
        return read_data(row->spec, json, &row->item->data, err);
    enum json_event event = json_next(json);
    if (event != JSON_STRING)
        return json_wanted(json, event, "a name", err);
    const char *name = arena_text(arena, json->value, json->value_len);
    if (!name)
        return err_set(err, CKPT_E_NOMEM, "no memory for a name of %zu bytes", json->value_len);
    row->item->tensor.name = name;
    row->item->tensor.name_len = (uint32_t)json->value_len; /* a description has at most 2^30 bytes */
    return 0;
}

/* json is in the object already. */
static int read_tensor(
    const struct spec *spec, struct model_tensors *group, struct json *json, struct ckpt_err *err) {
    static const struct field table[] = {
        {"name", FIELD_CUSTOM, 0, false}, TENSOR_FIELDS, {"data", FIELD_CUSTOM, 0, false}};
    struct row_reading row = {spec, model_add(spec->model, group, "", 0)};
    struct quoted name;
    if (!row.item)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " tensors", group->count);
    const struct fields fields = {.table = table,
        .count = sizeof table / sizeof *table,
        .into = row.item,
        .arena = &spec->model->arena,
        .custom = read_row_member,
        .arg = &row};
    int rc = fields_members(&fields, json, err);
    return rc ? err_wrap(err, rc, "tensor %" PRIu64 ", %s", group->count - 1,
                    quote(&name, row.item->tensor.name, row.item->tensor.name_len))
              : 0;
}

static int read_group(
    const struct spec *spec, struct model_tensors *group, struct json *json, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event != JSON_ARRAY)
        return json_wanted(json, event, "an array of tensors", err);
    int rc = 0;
    while (!rc && (event = json_next(json)) == JSON_OBJECT)
        rc = read_tensor(spec, group, json, err);
    if (!rc && event != JSON_ARRAY_END)
        rc = json_wanted(json, event, "an object", err);
    return rc;
}

/* ---- the description ------------------------------------------------------------------------------------
 */

static int read_format(struct json *json, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    return event == JSON_STRING && json_is(json, "oam") ? 0 : json_wanted(json, event, "\"oam\"", err);
}

static int read_version(struct json *json, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    uint64_t version;
    if (event == JSON_NUMBER && json_u64(json, &version) && version == OAM_VERSION_MAX)
        return 0;
    return json_wanted(json, event, "3, the version that is written,", err);
}

static int read_part(void *arg, const struct field *field, struct json *json, struct ckpt_err *err) {
    struct spec *spec = arg;
    if (!strcmp(field->name, "format"))
        return read_format(json, err);
    if (!strcmp(field->name, "version"))
        return read_version(json, err);
    if (!strcmp(field->name, "config"))
        return read_config(spec, json, err);
    if (!strcmp(field->name, "weights"))
        return read_group(spec, &spec->model->weights, json, err);
    if (!strcmp(field->name, "state"))
        return read_group(spec, &spec->model->state, json, err);
    if (!strcmp(field->name, "optimizer"))
        return read_optimizer(spec, json, err);
    return read_progress(spec, json, err);
}

static int parse(struct spec *spec, const struct buf *text, struct ckpt_err *err) {
    static const struct field table[] = {{"format", FIELD_CUSTOM, 0, false},
        {"version", FIELD_CUSTOM, 0, true}, {"config", FIELD_CUSTOM, 0, false},
        {"weights", FIELD_CUSTOM, 0, true}, {"state", FIELD_CUSTOM, 0, true},
        {"optimizer", FIELD_CUSTOM, 0, true}, {"progress", FIELD_CUSTOM, 0, false},
        {"expected", FIELD_SKIP, 0, true}, {"expected_sha256", FIELD_SKIP, 0, true},
        {"note", FIELD_SKIP, 0, true}};
    const struct fields fields = {.table = table,
        .count = sizeof table / sizeof *table,
        .into = spec->model,
        .arena = &spec->model->arena,
        .custom = read_part,
        .arg = spec};
    return fields_parse(&fields, text->bytes, text->len, err);
}

/* A checkpoint, say, or another file that was taken for one. */
static bool is_object(const struct buf *text) {
    size_t at = 0;
    while (at < text->len && memchr(" \t\r\n", text->bytes[at], 4))
        at++;
    return at < text->len && text->bytes[at] == '{';
}

int model_of_spec(const char *path, struct model *model, struct ckpt_err *err) {
    const char *slash = strrchr(path, '/');
    struct spec spec = {model, slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("")};
    struct buf text = {0};
    int rc = spec.folder ? files_load(path, &text, err) : err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    if (!rc && !is_object(&text))
        rc = err_set(err, CKPT_E_INVAL, "%s: neither a directory nor a description in JSON", path);
    else if (!rc && (rc = parse(&spec, &text, err)))
        rc = err_wrap(err, rc, "%s", path);
    buf_free(&text);
    free(spec.folder);
    return rc;
}
