/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int host_alloc(void *arg, uint64_t bytes, void **ret_block, struct ckpt_err *err) {
    (void)arg;
    void *block = bytes <= SIZE_MAX ? calloc(1, (size_t)bytes) : NULL;
    if (!block)
        return err_set(err, CKPT_E_NOMEM, "no memory for %" PRIu64 " bytes of values", bytes);
    *ret_block = block;
    return 0;
}

static void host_free(void *arg, void *block) {
    (void)arg;
    free(block);
}

static int host_put(
    void *arg, void *block, uint64_t offset, const void *bytes, uint64_t len, struct ckpt_err *err) {
    (void)arg, (void)err;
    memcpy((uint8_t *)block + offset, bytes, (size_t)len);
    return 0;
}

static int host_get(
    void *arg, void *block, uint64_t offset, void *bytes, uint64_t len, struct ckpt_err *err) {
    (void)arg, (void)err;
    memcpy(bytes, (uint8_t *)block + offset, (size_t)len);
    return 0;
}

static void *host_host(void *arg, void *block) {
    (void)arg;
    return block;
}

const struct ckpt_memory store_host_memory = {
    .alloc = host_alloc,
    .free = host_free,
    .put = host_put,
    .get = host_get,
    .host = host_host,
};
