/* SPDX-License-Identifier: Apache-2.0 */
/* Saving a store's parameters to a safetensors file, and loading them from a checkpoint. */
#include "base/ovf.h"
#include "base/quote.h"
#include "pack/out.h"
#include "pack/safetensors.h"
#include "pack/store.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES OUT_ROOM_MAX /* read or written at a time: a whole number of values */

/* Between the file's byte order and the host's: nothing where they are the same. */
static void turn(void *bytes, size_t len) {
    uint32_t word;
    for (size_t at = 0; htole32(1) != 1 && at < len; at += sizeof word) {
        memcpy(&word, (uint8_t *)bytes + at, sizeof word);
        word = htole32(word);
        memcpy((uint8_t *)bytes + at, &word, sizeof word);
    }
}

/* ---- saving -------------------------------------------------------------------------------------------- */

static int put(void *arg, const struct tensor *tensor, struct out *out, struct ckpt_err *err) {
    struct ckpt_store *store = arg;
    const struct ckpt_memory *memory = &store->memory;
    void *block = store->blocks[tensor - store->tensors];
    uint8_t *room;
    size_t piece;
    int rc = 0;
    for (uint64_t at = 0; !rc && at < tensor->size; at += piece) {
        piece = (size_t)ovf_min(PIECE_BYTES, tensor->size - at);
        rc = out_room(out, piece, &room, err);
        if (!rc)
            rc = memory->get(memory->arg, block, at, room, piece, err);
        if (rc)
            return rc;
        turn(room, piece);
        rc = out_put_room(out, piece, err);
    }
    return rc;
}

int ckpt_store_save(struct ckpt_store *store, const char *path, const struct ckpt_pair *metadata,
    size_t metadata_count, const struct ckpt_write_options *options, struct ckpt_err *err) {
    const struct safetensors_content content = {
        .items = store->tensors,
        .count = store->count,
        .metadata = metadata,
        .metadata_count = metadata_count,
        .put = put,
        .arg = store,
    };
    return safetensors_write(path, &content, options, err);
}

/* ---- loading ------------------------------------------------------------------------------------------- */

/* A parameter that the file holds; its values as they are read. */
struct staged {
    uint64_t number;
    const struct tensor *tensor; /* of the file */
    void *block;
};

struct load {
    struct ckpt_store *store;
    const struct catalog *catalog;
    struct source *source;
    const struct ckpt_write_options *options;
    struct staged *list;
    uint64_t count;
    uint64_t done, total; /* bytes */
    uint8_t *scratch;     /* for memory that the host does not see */
};

static bool same_shape(const struct tensor *a, const struct tensor *b) {
    return a->rank == b->rank && (!a->rank || !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape));
}

/* Which tensors are wanted, and whether they fit: before anything is read. */
static int stage(struct load *load, const struct tensor *tensor, struct ckpt_err *err) {
    uint64_t number;
    if (!store_find(load->store, tensor->name, tensor->name_len, &number))
        return 0;
    const struct tensor *parameter = &load->store->tensors[number];
    struct quoted name, has, wants;
    quote(&name, tensor->name, tensor->name_len);
    if (!same_shape(parameter, tensor))
        return err_set(err, CKPT_E_MISMATCH, "tensor %s has shape %s, the parameter has %s", name.text,
            quote_shape(&has, tensor->shape, tensor->rank),
            quote_shape(&wants, parameter->shape, parameter->rank));
    if (tensor->dtype != DTYPE_F32 || tensor->encoding != ENCODING_DENSE)
        return err_set(err, CKPT_E_MISMATCH, "tensor %s is stored as %s (%s), the parameter is F32 (dense)",
            name.text, dtype_table[tensor->dtype].name, encoding_names[tensor->encoding]);
    load->list[load->count++] = (struct staged){.number = number, .tensor = tensor};
    load->total += tensor->size;
    return 0;
}

static int stage_all(struct load *load, struct ckpt_err *err) {
    const struct group *group = &load->catalog->groups[GROUP_TENSORS];
    load->list = reallocarray(NULL, load->store->count + 1, sizeof *load->list);
    if (!load->list)
        return err_set(err, CKPT_E_NOMEM, "no memory to load parameters");
    int rc = 0; /* names are unique on both sides: at most store->count are staged */
    for (uint64_t i = 0; !rc && i < group->count; i++)
        rc = stage(load, &group->items[i], err);
    return rc;
}

/* host: where the block is in host memory, or NULL. */
static int read_piece(struct load *load, const struct staged *staged, uint8_t *host, uint64_t at, size_t len,
    struct ckpt_err *err) {
    const struct ckpt_memory *memory = &load->store->memory;
    uint8_t *bytes = host ? host + at : load->scratch;
    int rc = out_stop(load->options, err);
    if (!rc)
        rc = source_read(load->source, tensor_range(load->catalog, staged->tensor).off + at, bytes, len, err);
    if (rc)
        return rc;
    turn(bytes, len);
    load->done += len;
    out_tell(load->options, load->done, load->total);
    return host ? 0 : memory->put(memory->arg, staged->block, at, bytes, len, err);
}

static int read_values(struct load *load, struct staged *staged, struct ckpt_err *err) {
    const struct ckpt_memory *memory = &load->store->memory;
    uint64_t size = staged->tensor->size;
    int rc = size ? memory->alloc(memory->arg, size, &staged->block, err) : 0;
    if (rc)
        return rc;
    void *host = size && memory->host ? memory->host(memory->arg, staged->block) : NULL;
    if (size && !host && !load->scratch && !(load->scratch = malloc(PIECE_BYTES)))
        return err_set(err, CKPT_E_NOMEM, "no memory to load parameters");
    for (uint64_t at = 0; !rc && at < size; at += PIECE_BYTES)
        rc = read_piece(load, staged, host, at, (size_t)ovf_min(PIECE_BYTES, size - at), err);
    return rc;
}

static int read_all(struct load *load, struct ckpt_err *err) {
    struct quoted name;
    for (uint64_t i = 0; i < load->count; i++) {
        const struct tensor *tensor = load->list[i].tensor;
        int rc = read_values(load, &load->list[i], err);
        if (rc)
            return err_wrap(err, rc, "tensor %s", quote(&name, tensor->name, tensor->name_len));
    }
    return 0;
}

/* The fresh blocks take the places of the old ones: nothing here can fail. */
static void swap(struct load *load) {
    for (uint64_t i = 0; i < load->count; i++) {
        void **place = &load->store->blocks[load->list[i].number], *old = *place;
        *place = load->list[i].block;
        load->list[i].block = old;
    }
}

static void end(struct load *load) {
    const struct ckpt_memory *memory = &load->store->memory;
    for (uint64_t i = 0; i < load->count; i++)
        if (load->list[i].block)
            memory->free(memory->arg, load->list[i].block);
    free(load->list);
    free(load->scratch);
}

int store_load(struct ckpt_store *store, const struct catalog *catalog, struct source *verified,
    const struct ckpt_write_options *options, struct ckpt_err *err) {
    struct load load = {.store = store, .catalog = catalog, .source = verified, .options = options};
    int rc = stage_all(&load, err);
    if (!rc)
        rc = read_all(&load, err);
    if (!rc)
        swap(&load);
    end(&load);
    return rc;
}
