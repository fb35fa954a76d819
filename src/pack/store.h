/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameter store (see ckptfs.h). store.c keeps the parameters, store_memory.c is host memory,
 * store_file.c saves and loads.
 */
#ifndef PACK_STORE_H
#define PACK_STORE_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "source/source.h"

struct ckpt_store {
    struct ckpt_memory memory;
    struct arena arena;     /* names and shapes */
    struct tensor *tensors; /* the parameters by number: dense F32 */
    void **blocks;          /* their values; NULL: there is no element */
    uint32_t *by_name;      /* numbers, sorted by name */
    uint64_t count, cap;
};

extern const struct ckpt_memory store_host_memory;

/* Whether there is a parameter of that name, and its number. */
bool store_find(const struct ckpt_store *store, const char *name, size_t len, uint64_t *ret_number);

/* All or nothing, from the tensors of a catalog over `verified`. Errors as ckpt_store_load. */
int store_load(struct ckpt_store *store, const struct catalog *catalog, struct source *verified,
    const struct ckpt_write_options *options, struct ckpt_err *err);

#endif
