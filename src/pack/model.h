/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model that is to be written, as plain data: what it is made of, and where the bytes of each part are.
 * Nothing of it is checked while it is put together; oam.h says what can be written.
 *
 * Floats are kept as their bit patterns, so that a NaN survives any compiler and calling convention.
 */
#ifndef PACK_MODEL_H
#define PACK_MODEL_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "pack/out.h"
#include "source/source.h"

struct model_tensor;

/*
 * Where bytes are: in memory, in a file (opened only while it is read: a model may have more files than a
 * process may open), or in a source. All of them outlive the model or lie in its arena. Zeroed: no bytes.
 */
struct data {
    uint64_t len;          /* that are written */
    const void *memory;    /* or NULL */
    const char *path;      /* of a file, or NULL */
    uint64_t file_bytes;   /* with path: of the whole file; another size when it is opened is an error */
    struct source *source; /* or NULL */
    uint64_t off;          /* in the file or the source */
    /* Appends len bytes that are computed from the tensor's source; NULL: the bytes are copied as they are.
     */
    int (*put)(const struct model_tensor *tensor, struct out *out, struct ckpt_err *err);
};

/* tensor: name, name_len, shape, rank, dtype, encoding and block as they are to be; size is data.len, offset
 * and part mean nothing. */
struct model_tensor {
    struct tensor tensor;
    struct data data;
};

struct model_tensors {
    struct model_tensor *items;
    uint64_t count;
};

struct model_text {
    const char *text; /* len bytes, which may hold NULs */
    size_t len;
};

struct model_config {
    struct model_text architecture;
    uint32_t config_version, flags, d_model, n_layers, d_vocab;
    uint8_t weight_dtype, state_dtype, compute_dtype; /* enum dtype */
    struct data arch_config;
};

#define MODEL_MOMENTS 2

struct model_optimizer {
    bool present;
    struct model_text kind;
    uint32_t learning_rate, beta1, beta2, epsilon, weight_decay; /* bits of a float32 */
    int64_t step;
    struct data moments[MODEL_MOMENTS]; /* float32; of no bytes: there is none */
};

struct model_progress {
    uint8_t phase;
    bool lower_is_better;
    int64_t step;
    uint64_t bytes_seen, env_steps;
    uint32_t learning_rate, best_metric; /* bits of a float32 */
    struct model_text metric_name;
};

/* Starts zeroed; ends with model_free. */
struct model {
    struct arena arena;
    struct model_config config;
    struct model_tensors weights, state;
    struct model_optimizer optimizer;
    struct model_progress progress;
};

void model_free(struct model *model);

/* Adds a tensor with a copy of that name and everything else zero; NULL: no memory. Items move when more are
 * added. */
struct model_tensor *model_add(
    struct model *model, struct model_tensors *tensors, const char *name, size_t name_len);

/* The bytes as they are into the file. Errors: those of out.h; IO and CHANGED for a file. */
int data_put(const struct data *data, struct out *out, struct ckpt_err *err);
/* len of the bytes at off, which has them. Errors: likewise. */
int data_read(const struct data *data, uint64_t off, void *buf, size_t len, struct ckpt_err *err);
/* A tensor's: copied or computed. */
int model_tensor_put(const struct model_tensor *item, struct out *out, struct ckpt_err *err);

/*
 * A model from the catalog of an open .oam: its documents and tensors, with the bytes in `source`, whose
 * offsets are the catalog's. Both outlive the model. Errors: INVAL (not an .oam), CORRUPT, NOMEM, and
 * those of source_read.
 */
int model_of_catalog(
    const struct catalog *catalog, struct source *source, struct model *model, struct ckpt_err *err);

#endif
