/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/helper_store.h"

#include "base/ovf.h"

#include <errno.h>

static cuda_ptr place_at(const struct place *place) {
    return place->block->at + place->offset;
}

/* ---- make -------------------------------------------------------------------------------------------- */

static struct gpu_msg ready(const struct place *place) {
    return (struct gpu_msg){.type = GPU_READY,
        .u.ready = {.id = place->id,
            .bytes = place->bytes,
            .offset = place->offset,
            .block = place->block->size,
            .share = (uint8_t)place->block->share}};
}

int store_make(struct pool *pool, const struct gpu_make *make, struct gpu_msg *ret_reply, int *ret_fd,
    struct ckpt_err *err) {
    struct place *place;
    uint64_t taken;
    if (pool_find(pool, make->id))
        return err_os(err, EINVAL, "memory %llu is made again", (unsigned long long)make->id);
    int rc = pool_take(pool, make->id, make->bytes, make->share, &place, &taken, err);
    if (rc)
        return rc;
    struct gpu_msg reply = ready(place);
    rc = device_clear(pool->device, place_at(place), place->bytes, err);
    if (!rc)
        rc = pool_share(pool, place, reply.u.ready.handle, ret_fd, err);
    if (rc) {
        (void)pool_give(pool, place);
        return rc;
    }
    *ret_reply = reply;
    return 0;
}

/* ---- write and read ---------------------------------------------------------------------------------- */

/* Where the bytes are, on the device and in the window. */
static int find(struct pool *pool, const struct gpu_fill *move, cuda_ptr *ret_at, uint8_t **ret_half,
    struct ckpt_err *err) {
    const struct device *device = pool->device;
    const struct place *place = pool_find(pool, move->id);
    unsigned long long id = move->id, off = move->off;
    if (!place)
        return err_os(err, EINVAL, "there is no memory %llu", id);
    if (move->len > device->half || !ovf_inside(move->off, move->len, place->bytes))
        return err_os(err, EINVAL, "memory %llu has %llu bytes and a half %u, not %u from %llu on", id,
            (unsigned long long)place->bytes, device->half, move->len, off);
    *ret_at = place_at(place) + move->off;
    *ret_half = device->window + (size_t)move->half * device->half;
    return 0;
}

static struct gpu_msg copied(const struct gpu_fill *move) {
    return (struct gpu_msg){.type = GPU_COPIED, .u.copied = {.id = move->id, .half = move->half}};
}

int store_write(
    struct pool *pool, const struct gpu_fill *write, struct gpu_msg *ret_reply, struct ckpt_err *err) {
    cuda_ptr at;
    uint8_t *half;
    int rc = find(pool, write, &at, &half, err);
    if (!rc)
        rc = device_copy(pool->device, at, half, write->len, err);
    if (!rc)
        *ret_reply = copied(write);
    return rc;
}

int store_read(
    struct pool *pool, const struct gpu_fill *read, struct gpu_msg *ret_reply, struct ckpt_err *err) {
    cuda_ptr at;
    uint8_t *half;
    int rc = find(pool, read, &at, &half, err);
    if (!rc)
        rc = device_read(pool->device, half, at, read->len, err);
    if (!rc)
        *ret_reply = copied(read);
    return rc;
}
