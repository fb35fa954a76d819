/* SPDX-License-Identifier: Apache-2.0 */
/* The members that a description of a model and the documents of its tree have in common. */
#ifndef PACK_RECORDS_H
#define PACK_RECORDS_H

#include "pack/fields.h"

/* clang-format off */
#define CONFIG_FIELDS \
    {"architecture", FIELD_TEXT, offsetof(struct model_config, architecture), false}, \
    {"config_version", FIELD_U32, offsetof(struct model_config, config_version), false}, \
    {"flags", FIELD_U32, offsetof(struct model_config, flags), false}, \
    {"d_model", FIELD_U32, offsetof(struct model_config, d_model), false}, \
    {"n_layers", FIELD_U32, offsetof(struct model_config, n_layers), false}, \
    {"d_vocab", FIELD_U32, offsetof(struct model_config, d_vocab), false}, \
    {"weight_dtype", FIELD_DTYPE, offsetof(struct model_config, weight_dtype), false}, \
    {"state_dtype", FIELD_DTYPE, offsetof(struct model_config, state_dtype), false}, \
    {"compute_dtype", FIELD_DTYPE, offsetof(struct model_config, compute_dtype), false}

#define PROGRESS_FIELDS \
    {"phase", FIELD_U8, offsetof(struct model_progress, phase), false}, \
    {"step", FIELD_I64, offsetof(struct model_progress, step), false}, \
    {"bytes_seen", FIELD_U64, offsetof(struct model_progress, bytes_seen), false}, \
    {"env_steps", FIELD_U64, offsetof(struct model_progress, env_steps), false}, \
    {"learning_rate", FIELD_F32, offsetof(struct model_progress, learning_rate), false}, \
    {"best_metric", FIELD_F32, offsetof(struct model_progress, best_metric), false}, \
    {"lower_is_better", FIELD_BOOL, offsetof(struct model_progress, lower_is_better), false}, \
    {"metric_name", FIELD_TEXT, offsetof(struct model_progress, metric_name), false}

#define OPTIMIZER_FIELDS \
    {"kind", FIELD_TEXT, offsetof(struct model_optimizer, kind), false}, \
    {"learning_rate", FIELD_F32, offsetof(struct model_optimizer, learning_rate), false}, \
    {"beta1", FIELD_F32, offsetof(struct model_optimizer, beta1), false}, \
    {"beta2", FIELD_F32, offsetof(struct model_optimizer, beta2), false}, \
    {"epsilon", FIELD_F32, offsetof(struct model_optimizer, epsilon), false}, \
    {"weight_decay", FIELD_F32, offsetof(struct model_optimizer, weight_decay), false}, \
    {"step", FIELD_I64, offsetof(struct model_optimizer, step), false}

#define TENSOR_FIELDS \
    {"dtype", FIELD_DTYPE, offsetof(struct model_tensor, tensor.dtype), false}, \
    {"shape", FIELD_CUSTOM, 0, false}, \
    {"encoding", FIELD_ENCODING, offsetof(struct model_tensor, tensor.encoding), true}, \
    {"block_size", FIELD_U8, offsetof(struct model_tensor, tensor.block), true}
/* clang-format on */

/* The array of extents that comes next, as the shape of the tensor. Errors: INVAL, NOMEM. */
int record_shape(struct json *json, struct arena *arena, struct model_tensor *item, struct ckpt_err *err);

#endif
