/* SPDX-License-Identifier: Apache-2.0 */
/* Config and progress sections: JSON documents. */
#include "format/oam.h"

#include "base/json.h"
#include "base/rd.h"
#include "format/document.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A config this large is no config; it bounds what opening a file costs. */
#define CONFIG_BYTES_MAX ((uint64_t)256 << 20)

/* ---- config ----------------------------------------------------------------------------------------- */

static struct oam_config config_fields(const uint8_t *bytes) {
    struct rd rd = rd_over(bytes, OAM_CONFIG_BYTES);
    struct oam_config config;
    memcpy(config.architecture, rd_bytes(&rd, OAM_ARCHITECTURE_BYTES), OAM_ARCHITECTURE_BYTES);
    config.config_version = rd_u32(&rd);
    config.flags = rd_u32(&rd);
    config.d_model = rd_u32(&rd);
    config.n_layers = rd_u32(&rd);
    config.d_vocab = rd_u32(&rd);
    config.arch_config_bytes = rd_u32(&rd);
    config.weight_dtype = rd_u8(&rd);
    config.state_dtype = rd_u8(&rd);
    config.compute_dtype = rd_u8(&rd);
    return config;
}

static int check_config(const struct oam_config *config, uint64_t rest, struct ckpt_err *err) {
    const uint8_t dtypes[] = {config->weight_dtype, config->state_dtype, config->compute_dtype};
    int rc = oam_text(config->architecture, sizeof config->architecture, "architecture", err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof dtypes; i++)
        if (dtypes[i] >= DTYPE_OAM_COUNT)
            return err_verdict(err, CKPT_E_CORRUPT, "invalid scalar type", "%u, known are 0 to %d",
                (unsigned)dtypes[i], DTYPE_OAM_COUNT - 1);
    if (config->arch_config_bytes != rest)
        return err_verdict(err, CKPT_E_CORRUPT, "architecture config size mismatch",
            "%" PRIu32 " bytes announced, %" PRIu64 " follow", config->arch_config_bytes, rest);
    return 0;
}

/* The text itself, which a NUL follows, when it is a JSON object or array, else "null". */
static const char *arch_config_json(const char *text, size_t len) {
    char first = text[strspn(text, " \t\r\n")];
    return (first == '{' || first == '[') && json_python(text, len) ? text : "null";
}

static int write_config(const struct oam *oam, const struct oam_config *config, const char *arch_config,
    struct document *document, struct ckpt_err *err) {
    cJSON *root = cJSON_CreateObject();
    document_text(&root, "architecture", config->architecture);
    document_u64(&root, "config_version", config->config_version);
    document_u64(&root, "flags", config->flags);
    document_u64(&root, "d_model", config->d_model);
    document_u64(&root, "n_layers", config->n_layers);
    document_u64(&root, "d_vocab", config->d_vocab);
    document_text(&root, "weight_dtype", dtype_table[config->weight_dtype].name);
    document_text(&root, "state_dtype", dtype_table[config->state_dtype].name);
    document_text(&root, "compute_dtype", dtype_table[config->compute_dtype].name);
    document_u64(&root, "arch_config_bytes", config->arch_config_bytes);
    document_raw(&root, "arch_config", arch_config_json(arch_config, config->arch_config_bytes));
    return document_finish(&oam->catalog->arena, root, document, err);
}

static void add_arch_config_blob(struct oam *oam, const struct oam_section *section) {
    uint64_t at = oam->base + section->offset;
    oam->catalog->blobs[oam->catalog->blob_count++] = (struct blob){
        .path = "raw/arch_config.bin",
        .at = {at + OAM_CONFIG_BYTES, section->size - OAM_CONFIG_BYTES},
        .from = {at, section->size},
    };
}

/* bytes: the whole section and a NUL after it. */
static int config_of(struct oam *oam, const struct oam_section *section, const char *bytes,
    struct document *document, struct ckpt_err *err) {
    struct oam_config config = config_fields((const uint8_t *)bytes);
    int rc = check_config(&config, section->size - OAM_CONFIG_BYTES, err);
    if (!rc)
        rc = write_config(oam, &config, bytes + OAM_CONFIG_BYTES, document, err);
    if (!rc && config.arch_config_bytes)
        add_arch_config_blob(oam, section);
    return rc;
}

static int load(
    const struct oam *oam, const struct oam_section *section, char **ret_bytes, struct ckpt_err *err) {
    size_t size = (size_t)section->size;
    char *bytes = malloc(size + 1);
    if (!bytes)
        return err_set(err, CKPT_E_NOMEM, "no memory for %zu bytes", size);
    bytes[size] = '\0';
    int rc = source_read(oam->source, section->offset, bytes, size, err);
    if (rc)
        free(bytes);
    else
        *ret_bytes = bytes;
    return rc;
}

int oam_config(
    struct oam *oam, const struct oam_section *section, struct document *document, struct ckpt_err *err) {
    if (section->size < OAM_CONFIG_BYTES)
        return err_verdict(err, CKPT_E_CORRUPT, "invalid config section", "%" PRIu64 " bytes, at least %d",
            section->size, OAM_CONFIG_BYTES);
    if (section->size > CONFIG_BYTES_MAX)
        return err_set(err, CKPT_E_LIMIT, "%" PRIu64 " bytes, at most %" PRIu64 " are read", section->size,
            CONFIG_BYTES_MAX);
    char *bytes = NULL;
    int rc = load(oam, section, &bytes, err);
    if (rc)
        return rc;
    rc = config_of(oam, section, bytes, document, err);
    free(bytes);
    return rc;
}

/* ---- progress --------------------------------------------------------------------------------------- */

static struct oam_progress progress_fields(const uint8_t *bytes) {
    struct rd rd = rd_over(bytes, OAM_PROGRESS_BYTES);
    struct oam_progress progress;
    progress.phase = rd_u8(&rd);
    rd_skip(&rd, 3);
    progress.step = rd_i64(&rd);
    progress.bytes_seen = rd_u64(&rd);
    progress.env_steps = rd_u64(&rd);
    progress.learning_rate = rd_f32(&rd);
    progress.best_metric = rd_f32(&rd);
    progress.lower_is_better = rd_u8(&rd);
    rd_skip(&rd, 3);
    memcpy(progress.metric_name, rd_bytes(&rd, OAM_METRIC_NAME_BYTES), OAM_METRIC_NAME_BYTES);
    return progress;
}

static int write_progress(struct arena *arena, const struct oam_progress *progress, struct document *document,
    struct ckpt_err *err) {
    cJSON *root = cJSON_CreateObject();
    document_u64(&root, "phase", progress->phase);
    document_i64(&root, "step", progress->step);
    document_u64(&root, "bytes_seen", progress->bytes_seen);
    document_u64(&root, "env_steps", progress->env_steps);
    document_f32(&root, "learning_rate", progress->learning_rate);
    document_f32(&root, "best_metric", progress->best_metric);
    document_bool(&root, "lower_is_better", progress->lower_is_better);
    document_text(&root, "metric_name", progress->metric_name);
    return document_finish(arena, root, document, err);
}

int oam_progress(
    struct oam *oam, const struct oam_section *section, struct document *document, struct ckpt_err *err) {
    uint8_t bytes[OAM_PROGRESS_BYTES];
    if (section->size != sizeof bytes)
        return err_verdict(err, CKPT_E_CORRUPT, "invalid progress section", "%" PRIu64 " bytes, not %zu",
            section->size, sizeof bytes);
    int rc = source_read(oam->source, section->offset, bytes, sizeof bytes, err);
    if (rc)
        return rc;
    struct oam_progress progress = progress_fields(bytes);
    rc = oam_text(progress.metric_name, sizeof progress.metric_name, "metric name", err);
    return rc ? rc : write_progress(&oam->catalog->arena, &progress, document, err);
}
