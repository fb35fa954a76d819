/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored bytes are taken from raw/. A tensor that has no file there is taken from its .npy, which holds the
 * same bytes unless NumPy lacks the type or the tensor is quantized. Where both are there they must agree:
 * who changed one of them would not want the other to be written.
 */
#include "pack/dir.h"

#include "base/buf.h"
#include "pack/document.h"
#include "pack/files.h"
#include "pack/moments.h"
#include "pack/npy.h"
#include "pack/twin.h"

#include <inttypes.h>
#include <string.h>

struct dir {
    const char *path;
    struct model *model;
    const struct ckpt_write_options *options;
};

static int path_of(const struct dir *dir, const char *name, char **ret_path, struct ckpt_err *err) {
    const struct model_text text = {name, strlen(name)};
    return files_path(dir->path, &text, &dir->model->arena, ret_path, err);
}

/* The document `name`, and its path for messages. */
static int load(
    const struct dir *dir, const char *name, char **ret_path, struct buf *ret_text, struct ckpt_err *err) {
    int rc = path_of(dir, name, ret_path, err);
    return rc ? rc : files_load(*ret_path, ret_text, err);
}

/* The section's own bytes when they are there; they are not needed. */
static int find_section(
    const struct dir *dir, const char *name, struct data *ret_data, struct ckpt_err *err) {
    char *path;
    int rc = path_of(dir, name, &path, err);
    *ret_data = (struct data){0};
    return rc || !files_exists(path) ? rc : files_data(path, ret_data, err);
}

/* ---- where a tensor's bytes are -------------------------------------------------------------------------
 */

static int wrap_file(const struct tensor *tensor, struct ckpt_err *err, int rc) {
    uint64_t bytes = 0;
    struct tensor copy = *tensor;
    enum tensor_fault fault = tensor_check(&copy, &bytes);
    if (fault != TENSOR_OK && fault != TENSOR_SIZE)
        return rc;
    return err_wrap(err, rc, "the %" PRIu64 " stored bytes are missing", bytes);
}

static int find_tensor(
    void *arg, struct model_tensor *item, const struct document_files *files, struct ckpt_err *err) {
    const struct dir *dir = arg;
    char *raw = NULL, *npy = NULL;
    int rc = files->raw.text ? files_path(dir->path, &files->raw, &dir->model->arena, &raw, err) : 0;
    if (!rc && files->npy.text)
        rc = files_path(dir->path, &files->npy, &dir->model->arena, &npy, err);
    if (rc)
        return rc;
    if (!raw && !npy)
        return err_set(err, CKPT_E_INVAL, "it names neither a 'raw' nor an 'npy' file");
    bool array = npy && files_exists(npy);
    if (array && !(raw && files_exists(raw)))
        return npy_data(npy, &item->tensor, &item->data, err);
    rc = files_data(raw ? raw : npy, &item->data, err);
    if (rc)
        return wrap_file(&item->tensor, err, rc);
    return array ? twin_check(item, npy, dir->options, err) : 0;
}

/* ---- config and progress --------------------------------------------------------------------------------
 */

static int find_arch(const struct dir *dir, const struct document_arch *arch, struct ckpt_err *err) {
    struct data *data = &dir->model->config.arch_config;
    char *path;
    int rc = path_of(dir, "raw/arch_config.bin", &path, err);
    if (rc)
        return rc;
    const struct document_number *bytes = &arch->bytes;
    bool verbatim = arch->json.text && (!bytes->told || bytes->value == arch->json.len);
    if (!files_exists(path) && verbatim) {
        data->len = arch->json.len;
        data->memory = arena_text(&dir->model->arena, arch->json.text, arch->json.len);
        return data->memory ? 0 : err_set(err, CKPT_E_NOMEM, "no memory for %zu bytes", arch->json.len);
    }
    if (!files_exists(path) && !bytes->value)
        return 0;
    rc = files_data(path, data, err);
    if (!rc && bytes->told && data->len != bytes->value)
        rc = err_set(err, CKPT_E_INVAL, "%s has %" PRIu64 " bytes, config.json says %" PRIu64, path,
            data->len, bytes->value);
    return rc;
}

/* A tree without config.json is that of another format. */
static int read_config(const struct dir *dir, struct ckpt_err *err) {
    struct buf text = {0};
    struct document_arch arch;
    char *path = NULL, *other;
    int rc = load(dir, "config.json", &path, &text, err);
    if (rc == CKPT_E_IO && path_of(dir, "metadata.json", &other, NULL) == 0 && files_exists(other))
        return err_wrap(err, rc,
            "%s is the tree of a safetensors file, and only that of an .oam can be packed", dir->path);
    if (rc)
        return rc;
    rc = document_config(dir->model, text.bytes, text.len, &arch, err);
    if (rc)
        rc = err_wrap(err, rc, "%s", path);
    else
        rc = find_arch(dir, &arch, err);
    buf_free(&text);
    return rc;
}

static int read_progress(const struct dir *dir, struct ckpt_err *err) {
    struct buf text = {0};
    struct data section;
    char *path = NULL;
    int rc = find_section(dir, "sections/progress.bin", &section, err);
    if (!rc)
        rc = load(dir, "progress.json", &path, &text, err);
    if (rc)
        return rc;
    rc = document_progress(dir->model, text.bytes, text.len, &section, err);
    buf_free(&text);
    return rc ? err_wrap(err, rc, "%s", path) : 0;
}

/* ---- tensors and optimizer ------------------------------------------------------------------------------
 */

static int read_tensors(struct dir *dir, struct ckpt_err *err) {
    struct buf text = {0};
    char *path = NULL;
    int rc = load(dir, "tensors.json", &path, &text, err);
    if (rc)
        return rc;
    rc = document_tensors(dir->model, text.bytes, text.len, find_tensor, dir, err);
    buf_free(&text);
    return rc ? err_wrap(err, rc, "%s", path) : 0;
}

static int read_moment(struct dir *dir, unsigned which, uint64_t parameters, struct ckpt_err *err) {
    static const char *const raws[] = {"raw/optimizer/first_moment.bin", "raw/optimizer/second_moment.bin"};
    static const char *const npys[] = {"optimizer/first_moment.npy", "optimizer/second_moment.npy"};
    struct model_tensor item = {.tensor = {.shape = &parameters, .rank = 1, .dtype = DTYPE_F32}};
    const struct document_files files = {
        .raw = {raws[which], strlen(raws[which])}, .npy = {npys[which], strlen(npys[which])}};
    int rc = find_tensor(dir, &item, &files, err);
    if (!rc && (item.data.len % 4 || item.data.len / 4 != parameters))
        rc = err_set(err, CKPT_E_INVAL,
            "%s has %" PRIu64 " bytes, optimizer.json says %" PRIu64 " parameters of 4", item.data.path,
            item.data.len, parameters);
    if (!rc)
        dir->model->optimizer.moments[which] = item.data;
    return rc;
}

/* A second moment that the kind has not is left for the writer to refuse. */
static int read_moments(struct dir *dir, const struct document_number *parameters, struct ckpt_err *err) {
    char *second;
    if (!parameters->told)
        return err_set(err, CKPT_E_INVAL, "the member 'parameters' is missing");
    int rc = read_moment(dir, 0, parameters->value, err);
    if (!rc)
        rc = path_of(dir, "raw/optimizer/second_moment.bin", &second, err);
    if (rc || (moments_of(&dir->model->optimizer.kind) != 2 && !files_exists(second)))
        return rc;
    return read_moment(dir, 1, parameters->value, err);
}

static int read_optimizer(struct dir *dir, struct ckpt_err *err) {
    struct buf text = {0};
    struct data section;
    struct document_number parameters;
    char *path = NULL;
    int rc = path_of(dir, "optimizer/optimizer.json", &path, err);
    if (rc || !files_exists(path))
        return rc;
    rc = find_section(dir, "sections/optimizer.bin", &section, err);
    if (!rc)
        rc = files_load(path, &text, err);
    if (rc)
        return rc;
    rc = document_optimizer(dir->model, text.bytes, text.len, &section, &parameters, err);
    buf_free(&text);
    if (!rc)
        rc = read_moments(dir, &parameters, err);
    return rc ? err_wrap(err, rc, "%s", path) : 0;
}

int model_of_dir(
    const char *path, const struct ckpt_write_options *options, struct model *model, struct ckpt_err *err) {
    struct dir dir = {path, model, options};
    int rc = read_config(&dir, err);
    if (!rc)
        rc = read_progress(&dir, err);
    if (!rc)
        rc = read_tensors(&dir, err);
    return rc ? rc : read_optimizer(&dir, err);
}
