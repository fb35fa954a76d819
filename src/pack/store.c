/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/store.h"

#include "base/ovf.h"
#include "base/quote.h"
#include "base/text.h"
#include "catalog/outline.h"
#include "format/safetensors_layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 4
#define BYTES_MAX ((uint64_t)1 << 62)

static int no_memory(struct ckpt_err *err) {
    return err_set(err, CKPT_E_NOMEM, "no memory for a parameter");
}

int ckpt_store_create(const struct ckpt_memory *memory, struct ckpt_store **ret_store, struct ckpt_err *err) {
    struct ckpt_store *store = calloc(1, sizeof *store);
    if (!store)
        return err_set(err, CKPT_E_NOMEM, "no memory for a store");
    store->memory = memory ? *memory : store_host_memory;
    *ret_store = store;
    return 0;
}

void ckpt_store_free(struct ckpt_store *store) {
    if (!store)
        return;
    for (uint64_t i = 0; i < store->count; i++)
        if (store->blocks[i])
            store->memory.free(store->memory.arg, store->blocks[i]);
    free(store->tensors);
    free(store->blocks);
    free(store->by_name);
    arena_free(&store->arena);
    free(store);
}

/* ---- names --------------------------------------------------------------------------------------------- */

static int compare(const struct tensor *tensor, const char *name, size_t len) {
    int order = memcmp(tensor->name, name, ovf_min(tensor->name_len, len));
    return order ? order : (tensor->name_len > len) - (tensor->name_len < len);
}

/* Where in by_name the first name stands that is not before this one. */
static uint64_t place_of(const struct ckpt_store *store, const char *name, size_t len) {
    uint64_t low = 0, high = store->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (compare(&store->tensors[store->by_name[middle]], name, len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool store_find(const struct ckpt_store *store, const char *name, size_t len, uint64_t *ret_number) {
    uint64_t at = place_of(store, name, len);
    if (at == store->count || compare(&store->tensors[store->by_name[at]], name, len) != 0)
        return false;
    if (ret_number)
        *ret_number = store->by_name[at];
    return true;
}

int ckpt_store_find(
    const struct ckpt_store *store, const char *name, uint64_t *ret_number, struct ckpt_err *err) {
    struct quoted quoted;
    if (store_find(store, name, strlen(name), ret_number))
        return 0;
    return err_set(err, CKPT_E_NOENT, "no parameter %s", quote(&quoted, name, strlen(name)));
}

/* ---- adding -------------------------------------------------------------------------------------------- */

static int check_shape(struct tensor *tensor, const char *quoted, struct ckpt_err *err) {
    struct quoted shape;
    enum tensor_fault fault = tensor_check(tensor, &tensor->size);
    if ((fault == TENSOR_OK || fault == TENSOR_SIZE) && tensor->size <= BYTES_MAX)
        return 0;
    return err_set(err, CKPT_E_LIMIT, "parameter %s: shape %s of float32 passes 2^62 bytes", quoted,
        quote_shape(&shape, tensor->shape, tensor->rank));
}

static int check(const struct ckpt_store *store, struct tensor *tensor, struct ckpt_err *err) {
    struct quoted name;
    uint64_t number;
    quote(&name, tensor->name, tensor->name_len);
    const char *refused = outline_refuses(tensor);
    if (refused)
        return err_set(err, CKPT_E_INVAL, "parameter %s: %s", name.text, refused);
    if (!text_is_utf8(tensor->name, tensor->name_len))
        return err_set(err, CKPT_E_INVAL, "parameter %s: the name is not UTF-8", name.text);
    if (store_find(store, tensor->name, tensor->name_len, &number))
        return err_set(
            err, CKPT_E_INVAL, "parameter %s is there already, as number %" PRIu64, name.text, number);
    if (tensor->rank > SAFETENSORS_RANK_MAX)
        return err_set(err, CKPT_E_LIMIT, "parameter %s: rank %" PRIu32 ", at most %d", name.text,
            tensor->rank, SAFETENSORS_RANK_MAX);
    return check_shape(tensor, name.text, err);
}

static bool grow(struct ckpt_store *store) {
    size_t cap = store->cap ? 2 * (size_t)store->cap : 64;
    if (store->count < store->cap)
        return true;
    struct tensor *tensors = reallocarray(store->tensors, cap, sizeof *tensors);
    store->tensors = tensors ? tensors : store->tensors;
    void **blocks = reallocarray(store->blocks, cap, sizeof *blocks);
    store->blocks = blocks ? blocks : store->blocks;
    uint32_t *by_name = reallocarray(store->by_name, cap, sizeof *by_name);
    store->by_name = by_name ? by_name : store->by_name;
    if (!tensors || !blocks || !by_name || cap > UINT32_MAX)
        return false;
    store->cap = cap;
    return true;
}

static bool keep_texts(struct ckpt_store *store, struct tensor *tensor) {
    uint64_t *shape = arena_alloc(&store->arena, tensor->rank, sizeof *shape);
    char *name = arena_text(&store->arena, tensor->name, tensor->name_len);
    if (!shape || !name)
        return false;
    if (tensor->rank)
        memcpy(shape, tensor->shape, tensor->rank * sizeof *shape);
    tensor->shape = shape;
    tensor->name = name;
    return true;
}

static void insert(struct ckpt_store *store, const struct tensor *tensor, void *block) {
    uint64_t at = place_of(store, tensor->name, tensor->name_len);
    memmove(&store->by_name[at + 1], &store->by_name[at], (store->count - at) * sizeof *store->by_name);
    store->by_name[at] = (uint32_t)store->count;
    store->tensors[store->count] = *tensor;
    store->blocks[store->count++] = block;
}

int ckpt_store_add(struct ckpt_store *store, const char *name, const uint64_t *shape, size_t rank,
    uint64_t *ret_number, struct ckpt_err *err) {
    struct tensor tensor = {
        .name = name,
        .name_len = (uint32_t)ovf_min(strlen(name), UINT32_MAX),
        .shape = shape,
        .rank = (uint32_t)ovf_min(rank, UINT32_MAX),
        .dtype = DTYPE_F32,
        .encoding = ENCODING_DENSE,
    };
    void *block = NULL;
    int rc = check(store, &tensor, err);
    if (!rc && !(grow(store) && keep_texts(store, &tensor)))
        rc = no_memory(err);
    if (!rc && tensor.size)
        rc = store->memory.alloc(store->memory.arg, tensor.size, &block, err);
    if (rc)
        return rc;
    if (ret_number)
        *ret_number = store->count;
    insert(store, &tensor, block);
    return 0;
}

/* ---- values -------------------------------------------------------------------------------------------- */

uint64_t ckpt_store_count(const struct ckpt_store *store) {
    return store->count;
}

static int check_number(const struct ckpt_store *store, uint64_t number, struct ckpt_err *err) {
    if (number < store->count)
        return 0;
    return err_set(err, CKPT_E_NOENT, "no parameter number %" PRIu64 " among %" PRIu64, number, store->count);
}

int ckpt_store_parameter(const struct ckpt_store *store, uint64_t number,
    struct ckpt_parameter *ret_parameter, struct ckpt_err *err) {
    int rc = check_number(store, number, err);
    if (rc)
        return rc;
    const struct tensor *tensor = &store->tensors[number];
    void *block = store->blocks[number];
    *ret_parameter = (struct ckpt_parameter){
        .name = tensor->name,
        .shape = tensor->shape,
        .rank = tensor->rank,
        .elements = tensor->elements,
        .block = block,
        .values = block && store->memory.host ? store->memory.host(store->memory.arg, block) : NULL,
    };
    return 0;
}

static int check_values(
    const struct ckpt_store *store, uint64_t number, uint64_t first, uint64_t count, struct ckpt_err *err) {
    int rc = check_number(store, number, err);
    if (rc)
        return rc;
    const struct tensor *tensor = &store->tensors[number];
    struct quoted name;
    if (ovf_inside(first, count, tensor->elements))
        return 0;
    return err_set(err, CKPT_E_INVAL, "parameter %s: %" PRIu64 " values from %" PRIu64 " on, it has %" PRIu64,
        quote(&name, tensor->name, tensor->name_len), count, first, tensor->elements);
}

int ckpt_store_get(struct ckpt_store *store, uint64_t number, uint64_t first, float *values, uint64_t count,
    struct ckpt_err *err) {
    const struct ckpt_memory *memory = &store->memory;
    int rc = check_values(store, number, first, count, err);
    if (rc || !count)
        return rc;
    return memory->get(
        memory->arg, store->blocks[number], VALUE_BYTES * first, values, VALUE_BYTES * count, err);
}

int ckpt_store_put(struct ckpt_store *store, uint64_t number, uint64_t first, const float *values,
    uint64_t count, struct ckpt_err *err) {
    const struct ckpt_memory *memory = &store->memory;
    int rc = check_values(store, number, first, count, err);
    if (rc || !count)
        return rc;
    return memory->put(
        memory->arg, store->blocks[number], VALUE_BYTES * first, values, VALUE_BYTES * count, err);
}
