/* SPDX-License-Identifier: Apache-2.0 */
/* Anything to one safetensors file. */
#include "base/ovf.h"
#include "base/quote.h"
#include "catalog/outline.h"
#include "dequant/values.h"
#include "pack/convert_own.h"
#include "pack/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_ELEMENTS ((uint64_t)64 * 1024)     /* converted at a time: a whole number of blocks */
#define SCRATCH_BYTES (BATCH_ELEMENTS / 32 * 36) /* of their stored bytes, at most (Q8) */

struct job {
    struct convert *convert;
    struct tensor *items; /* that are held */
    uint64_t count;
    struct metadata metadata;
    uint8_t *scratch; /* stored bytes of quantized tensors */
};

/* ---- what is held ----------------------------------------------------------------------------------------
 */

static void refuse_group(struct convert *convert, enum group_kind kind, const char *name, const char *why) {
    const struct group *group = &convert->catalog->groups[kind];
    if (group->count)
        convert_refuse(
            convert, "%s (%" PRIu64 " tensor%s): %s", name, group->count, group->count == 1 ? "" : "s", why);
}

static int hold_tensors(struct job *job, struct ckpt_err *err) {
    const struct group *group = &job->convert->catalog->groups[GROUP_TENSORS];
    struct quoted name;
    job->items = reallocarray(NULL, group->count + 1, sizeof *job->items);
    if (!job->items)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " tensors", group->count);
    for (uint64_t i = 0; i < group->count; i++) {
        const struct tensor *tensor = &group->items[i];
        const char *why = outline_refuses(tensor);
        if (why)
            convert_refuse(job->convert, "tensor %s: %s", quote(&name, tensor->name, tensor->name_len), why);
        else
            job->items[job->count++] = *tensor;
    }
    return 0;
}

static int hold_metadata(struct job *job, struct ckpt_err *err) {
    struct metadata others = {0};
    struct quoted key;
    if (convert_is_oam(job->convert->catalog))
        return convert_describe(job->convert, job->items, job->count, &job->metadata, err);
    int rc = convert_gather(job->convert, &job->metadata, &others, err);
    for (size_t i = 0; !rc && i < others.count; i++)
        convert_refuse(job->convert, "metadata %s: safetensors has no values but strings",
            quote(&key, others.pairs[i].key, others.pairs[i].key_len));
    metadata_free(&others);
    return rc;
}

/* ---- data ---------------------------------------------------------------------------------------------- */

static int put_batch(
    struct job *job, const struct values *values, uint64_t off, struct out *out, struct ckpt_err *err) {
    struct source *source = job->convert->source;
    uint8_t *scales = job->scratch + values->ints.len, *room;
    int rc = source_read(source, off + values->ints.off, job->scratch, values->ints.len, err);
    if (!rc)
        rc = source_read(source, off + values->scales.off, scales, values->scales.len, err);
    if (!rc)
        rc = out_room(out, (size_t)(4 * values->count), &room, err);
    if (rc)
        return rc;
    values_convert(values, job->scratch, scales, 0, values->count, room);
    return out_put_room(out, (size_t)(4 * values->count), err);
}

static int put_values(
    struct job *job, const struct tensor *tensor, uint64_t off, struct out *out, struct ckpt_err *err) {
    if (!job->scratch && !(job->scratch = malloc(SCRATCH_BYTES)))
        return err_set(err, CKPT_E_NOMEM, "no memory to convert a tensor");
    int rc = 0;
    for (uint64_t at = 0; !rc && at < tensor->elements; at += BATCH_ELEMENTS) {
        struct values values = values_of(tensor, at, ovf_min(BATCH_ELEMENTS, tensor->elements - at));
        rc = put_batch(job, &values, off, out, err);
    }
    return rc;
}

static int put(void *arg, const struct tensor *tensor, struct out *out, struct ckpt_err *err) {
    struct job *job = arg;
    struct range at = tensor_range(job->convert->catalog, tensor);
    if (tensor->encoding != ENCODING_DENSE)
        return put_values(job, tensor, at.off, out, err);
    return out_copy(out, job->convert->source, at.off, at.len, err);
}

/* ---- the conversion ------------------------------------------------------------------------------------ */

static int hold(struct job *job, struct ckpt_err *err) {
    struct convert *convert = job->convert;
    int rc = hold_tensors(job, err);
    if (rc)
        return rc;
    refuse_group(convert, GROUP_STATE, "the state", "safetensors has no place for it beside the weights");
    refuse_group(convert, GROUP_OPTIMIZER, "the optimizer", "safetensors has no place for it");
    convert_refuse_sections(convert);
    rc = hold_metadata(job, err);
    return rc ? rc : convert_judge(convert, "safetensors", err);
}

int convert_to_safetensors(struct convert *convert, const char *path, struct ckpt_err *err) {
    struct job job = {.convert = convert};
    int rc = hold(&job, err);
    const struct safetensors_content content = {
        .items = job.items,
        .count = job.count,
        .metadata = job.metadata.pairs,
        .metadata_count = job.metadata.count,
        .put = put,
        .arg = &job,
    };
    if (!rc)
        rc = safetensors_write(path, &content, convert->options, err);
    metadata_free(&job.metadata);
    free(job.items);
    free(job.scratch);
    return rc;
}
