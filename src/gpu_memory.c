/* SPDX-License-Identifier: Apache-2.0 */
/* A device's memory for parameter stores: the options' defaults, and places as the public header has them. */
#include "base/err.h"
#include "gpu/store.h"
#include "gpu_options.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof((struct ckpt_gpu_place *)0)->uuid == GPU_UUID_BYTES, "a UUID");
static_assert(sizeof((struct ckpt_gpu_place *)0)->ipc_handle == GPU_HANDLE_BYTES, "a handle");

int ckpt_gpu_memory(
    const struct ckpt_gpu_options *options, struct ckpt_memory **ret_memory, struct ckpt_err *err) {
    static const struct ckpt_gpu_options defaults;
    options = options ? options : &defaults;
    const struct gpu_store_setup setup = {
        .helper = gpu_text_or(options->helper, GPU_HELPER_PATH),
        .device = gpu_text_or(options->device, ""),
        .share = options->share == CKPT_GPU_FD ? GPU_SHARE_FD : GPU_SHARE_IPC,
        .start_ms = gpu_milliseconds(options->start_seconds, GPU_HELLO_MS),
        .reply_ms = gpu_milliseconds(options->reply_seconds, GPU_REPLY_MS),
    };
    struct gpu_store *store;
    int rc = gpu_store_new(&setup, &store, err);
    if (!rc)
        *ret_memory = gpu_store_memory(store);
    return rc;
}

void ckpt_gpu_memory_free(struct ckpt_memory *memory) {
    gpu_store_free(memory ? gpu_store_of(memory) : NULL);
}

int ckpt_gpu_place(const struct ckpt_memory *memory, const void *block, struct ckpt_gpu_place *ret_place,
    struct ckpt_err *err) {
    const struct gpu_store *store = gpu_store_of(memory);
    const struct gpu_block *place = block;
    if (!store || !place)
        return err_set(err, CKPT_E_INVAL, "no block of a device's memory");
    int rc = gpu_store_lives(store, err);
    if (rc)
        return rc;
    const struct gpu_device *device = gpu_store_device(store);
    *ret_place = (struct ckpt_gpu_place){.device = device->ordinal,
        .share = place->at.share == GPU_SHARE_FD ? CKPT_GPU_FD : CKPT_GPU_IPC,
        .fd = place->fd,
        .allocation = place->at.block,
        .offset = place->at.offset,
        .bytes = place->at.bytes};
    memcpy(ret_place->uuid, device->uuid, sizeof ret_place->uuid);
    memcpy(ret_place->ipc_handle, place->at.handle, sizeof ret_place->ipc_handle);
    return 0;
}
