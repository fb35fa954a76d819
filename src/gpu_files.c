/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_files.h"

#include "base/err.h"
#include "gpu/client.h"
#include "gpu/place.h"
#include "gpu_options.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct gpu_files {
    const struct catalog *catalog;
    struct guard *guard;
    struct gpu *gpu;
    char **globs; /* ends with NULL; NULL: all. One piece of memory with its texts */
    struct tree_device device;
};

/* ---- which --------------------------------------------------------------------------------------------- */

static int split_globs(const char *text, char ***ret_globs, struct ckpt_err *err) {
    size_t len = strlen(text), count = 1;
    for (const char *at = text; *at; at++)
        count += *at == ':';
    char **globs = calloc(1, (count + 1) * sizeof *globs + len + 1);
    if (!globs)
        return err_set(err, CKPT_E_NOMEM, "no memory for %zu patterns of gpu_tensors", count);
    char *rest = memcpy(globs + count + 1, text, len + 1);
    for (size_t i = 0; i < count; i++)
        globs[i] = strsep(&rest, ":");
    *ret_globs = globs;
    return 0;
}

static bool selects(void *arg, const struct tensor *tensor) {
    const struct gpu_files *files = arg;
    for (char **glob = files->globs; glob && *glob; glob++)
        if (fnmatch(*glob, tensor->name, 0) == 0)
            return true;
    return !files->globs;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* What the tensor's name, shape and place were parsed from. */
static int vouch(
    void *arg, const struct tensor *tensor, const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    const struct gpu_files *files = arg;
    (void)tensor;
    int rc = guard_vouch(files->guard, files->catalog->head, cancel, err);
    return rc ? rc : guard_vouch(files->guard, files->catalog->groups[GROUP_TENSORS].index, cancel, err);
}

static int read_stored(void *arg, const struct tensor *tensor, uint64_t off, void *buf, size_t len,
    const struct ckpt_cancel *cancel, struct ckpt_err *err) {
    const struct gpu_files *files = arg;
    return guard_read(files->guard, tensor_range(files->catalog, tensor).off + off, buf, len, cancel, err);
}

/* ---- the tree's calls ---------------------------------------------------------------------------------- */

static int with_text(char *text, char **ret_text, struct ckpt_err *err) {
    if (!text)
        return err_set(err, CKPT_E_NOMEM, "no memory for a file of gpu/");
    *ret_text = text;
    return 0;
}

static int describe(void *arg, const struct ckpt_cancel *cancel, char **ret_text, struct ckpt_err *err) {
    struct gpu_files *files = arg;
    struct gpu_facts facts;
    int rc = gpu_describe(files->gpu, cancel, &facts, err);
    return rc ? rc : with_text(facts_text(&facts), ret_text, err);
}

static void let_go(void *arg, void *hold) {
    struct gpu_files *files = arg;
    gpu_give_back(files->gpu, hold);
}

static int load(void *arg, const struct tensor *tensor, const struct ckpt_cancel *cancel, char **ret_text,
    void **ret_hold, struct ckpt_err *err) {
    struct gpu_files *files = arg;
    uint64_t number = (uint64_t)(tensor - files->catalog->groups[GROUP_TENSORS].items);
    struct gpu_place place;
    struct gpu_loan *loan;
    int rc = gpu_borrow(files->gpu, number, cancel, &place, &loan, err);
    if (rc)
        return rc;
    rc = with_text(place_text(&place), ret_text, err);
    if (rc)
        gpu_give_back(files->gpu, loan);
    else
        *ret_hold = loan;
    return rc;
}

/* ---- making -------------------------------------------------------------------------------------------- */

static struct gpu_setup setup_of(
    struct gpu_files *files, const struct ckpt_gpu_options *options, const struct ckpt_log *log) {
    static const enum gpu_target targets[] = {[CKPT_GPU_STORED] = GPU_TARGET_STORED,
        [CKPT_GPU_F32] = GPU_TARGET_F32,
        [CKPT_GPU_F16] = GPU_TARGET_F16,
        [CKPT_GPU_BF16] = GPU_TARGET_BF16};
    return (struct gpu_setup){
        .source = {.arg = files, .vouch = vouch, .read = read_stored},
        .tensors = &files->catalog->groups[GROUP_TENSORS],
        .helper = gpu_text_or(options->helper, GPU_HELPER_PATH),
        .device = gpu_text_or(options->device, ""),
        .sockets = gpu_text_or(options->sockets, "/tmp"),
        .target = targets[options->dtype],
        .share = options->share == CKPT_GPU_FD ? GPU_SHARE_FD : GPU_SHARE_IPC,
        .limited = options->limited,
        .budget = options->budget,
        .start_ms = gpu_milliseconds(options->start_seconds, GPU_HELLO_MS),
        .reply_ms = gpu_milliseconds(options->reply_seconds, GPU_REPLY_MS),
        .log = *log,
    };
}

int gpu_files_new(const struct ckpt_gpu_options *options, const struct ckpt_log *log,
    const struct catalog *catalog, struct guard *guard, struct gpu_files **ret_files, struct ckpt_err *err) {
    if ((unsigned)options->dtype > CKPT_GPU_BF16 || (unsigned)options->share > CKPT_GPU_FD)
        return err_set(
            err, CKPT_E_INVAL, "gpu: no dtype %d or share %d", (int)options->dtype, (int)options->share);
    struct gpu_files *files = calloc(1, sizeof *files);
    if (!files)
        return err_set(err, CKPT_E_NOMEM, "no memory for gpu/");
    files->catalog = catalog;
    files->guard = guard;
    files->device = (struct tree_device){files, selects, describe, load, let_go};
    const struct gpu_setup setup = setup_of(files, options, log);
    int rc = options->tensors ? split_globs(options->tensors, &files->globs, err) : 0;
    if (!rc)
        rc = gpu_new(&setup, &files->gpu, err);
    if (rc)
        gpu_files_free(files);
    else
        *ret_files = files;
    return rc;
}

void gpu_files_free(struct gpu_files *files) {
    if (!files)
        return;
    gpu_free(files->gpu);
    free(files->globs);
    free(files);
}

const struct tree_device *gpu_files_device(const struct gpu_files *files) {
    return files ? &files->device : NULL;
}
