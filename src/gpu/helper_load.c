/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/helper_load.h"

#include "base/ovf.h"
#include "dequant/dequant.h"

#include <errno.h>

/* The kernel that reads what is stored so; -1: none does. */
static int kind_of(enum dtype dtype, enum encoding encoding) {
    static const struct {
        enum dtype dtype;
        enum encoding encoding;
    } rows[CONVERT_COUNT] = {[CONVERT_F32] = {DTYPE_F32, ENCODING_DENSE},
        [CONVERT_F16] = {DTYPE_F16, ENCODING_DENSE},
        [CONVERT_BF16] = {DTYPE_BF16, ENCODING_DENSE},
        [CONVERT_F8_E5M2] = {DTYPE_F8_E5M2, ENCODING_DENSE},
        [CONVERT_F8_E4M3] = {DTYPE_F8_E4M3, ENCODING_DENSE},
        [CONVERT_F8_E8M0] = {DTYPE_F8_E8M0, ENCODING_DENSE},
        [CONVERT_F8_E5M2FNUZ] = {DTYPE_F8_E5M2FNUZ, ENCODING_DENSE},
        [CONVERT_F8_E4M3FNUZ] = {DTYPE_F8_E4M3FNUZ, ENCODING_DENSE},
        [CONVERT_Q4] = {DTYPE_F32, ENCODING_Q4},
        [CONVERT_Q8] = {DTYPE_F32, ENCODING_Q8}};
    for (int i = 0; i < CONVERT_COUNT; i++)
        if (rows[i].dtype == dtype && rows[i].encoding == encoding)
            return i;
    return -1;
}

static enum convert_to to_of(enum dtype result) {
    return result == DTYPE_F16 ? CONVERT_TO_F16 : result == DTYPE_BF16 ? CONVERT_TO_BF16 : CONVERT_TO_F32;
}

static bool quantized(const struct load *load) {
    return load->want.encoding != ENCODING_DENSE;
}

/* Frees everything but the place. */
static void finish(struct load *load) {
    if (load->staging)
        (void)load->pool->device->driver.cuMemFree(load->staging);
    load->staging = 0;
    load->place = NULL;
}

static uint64_t drop(struct load *load) {
    struct place *place = load->place;
    finish(load);
    return pool_give(load->pool, place);
}

/* ---- begin ------------------------------------------------------------------------------------------- */

static int plan(struct load *load, const struct gpu_begin *want, struct ckpt_err *err) {
    const struct device *device = load->pool->device;
    load->want = *want;
    load->filled = 0;
    load->result = gpu_result(want->dtype, want->encoding, want->target);
    load->to = to_of(load->result);
    load->kind = -1;
    if (want->encoding == ENCODING_DENSE && load->result == want->dtype)
        return 0;
    load->kind = kind_of(want->dtype, want->encoding);
    if (load->kind < 0 || !device->kernels[load->kind])
        return err_os(err, EOPNOTSUPP, "tensor %llu cannot be converted: %s", (unsigned long long)want->id,
            device->lack);
    return 0;
}

static int stage(struct load *load, struct ckpt_err *err) {
    struct driver *driver = &load->pool->device->driver;
    uint64_t bytes = load->want.bytes;
    if (!quantized(load))
        bytes = ovf_min(bytes, load->pool->device->half);
    if (load->kind < 0 || !bytes)
        return 0;
    return driver_check(driver, driver->cuMemAlloc(&load->staging, bytes), err,
        "cuMemAlloc of %llu bytes to convert from", (unsigned long long)bytes);
}

int load_begin(
    struct load *load, const struct gpu_begin *want, struct gpu_msg *ret_reply, struct ckpt_err *err) {
    unsigned long long id = want->id;
    if (load->place)
        return err_os(err, EINVAL, "tensor %llu is begun while %llu is being loaded", id,
            (unsigned long long)load->want.id);
    if (pool_find(load->pool, want->id))
        return err_os(err, EINVAL, "tensor %llu is begun again", id);
    uint64_t bytes, taken;
    int rc = plan(load, want, err);
    if (rc)
        return rc;
    if (!gpu_device_bytes(load->result, want->elements, &bytes))
        return err_os(err, ENOMEM, "tensor %llu of %llu elements", id, (unsigned long long)want->elements);
    rc = pool_take(load->pool, want->id, bytes, want->share, &load->place, &taken, err);
    if (!rc && (rc = stage(load, err)))
        (void)drop(load);
    if (!rc)
        *ret_reply = (struct gpu_msg){.type = GPU_ALLOCATED,
            .u.allocated = {.id = want->id, .bytes = bytes, .taken = taken, .dtype = (uint8_t)load->result}};
    return rc;
}

/* ---- fill -------------------------------------------------------------------------------------------- */

static int not_loaded(uint64_t id, struct ckpt_err *err) {
    return err_os(err, ECANCELED, "tensor %llu is not being loaded", (unsigned long long)id);
}

static int check_fill(const struct load *load, const struct gpu_fill *fill, struct ckpt_err *err) {
    uint64_t left = load->want.bytes - load->filled;
    if (fill->off == load->filled && fill->len <= left && fill->len <= load->pool->device->half &&
        (fill->len % GPU_PIECE == 0 || fill->len == left))
        return 0;
    return err_os(err, EINVAL, "tensor %llu has %llu of %llu bytes, and %u more come for offset %llu",
        (unsigned long long)fill->id, (unsigned long long)load->filled, (unsigned long long)load->want.bytes,
        fill->len, (unsigned long long)fill->off);
}

static cuda_ptr place_at(const struct load *load) {
    return load->place->block->at + load->place->offset;
}

/* Copies, and starts to convert what can be converted piece by piece: the stream keeps the next copy back. */
static int move_piece(struct load *load, const struct gpu_fill *fill, struct ckpt_err *err) {
    struct device *device = load->pool->device;
    const uint8_t *from = device->window + (size_t)fill->half * device->half;
    if (load->kind < 0)
        return device_copy(device, place_at(load) + fill->off, from, fill->len, err);
    if (quantized(load))
        return device_copy(device, load->staging + fill->off, from, fill->len, err);
    uint64_t in = dtype_table[load->want.dtype].bits / 8, out = dtype_table[load->result].bits / 8;
    int rc = device_copy(device, load->staging, from, fill->len, err);
    if (rc)
        return rc;
    return device_convert(device, (enum convert_kind)load->kind, load->to, load->staging, 0,
        place_at(load) + fill->off / in * out, fill->len / in, err);
}

int load_fill(
    struct load *load, const struct gpu_fill *fill, struct gpu_msg *ret_reply, struct ckpt_err *err) {
    if (!load->place || load->want.id != fill->id)
        return not_loaded(fill->id, err);
    int rc = check_fill(load, fill, err);
    if (!rc)
        rc = move_piece(load, fill, err);
    if (rc) {
        (void)drop(load);
        return rc;
    }
    load->filled += fill->len;
    *ret_reply = (struct gpu_msg){.type = GPU_FILLED, .u.filled = {.id = fill->id, .half = fill->half}};
    return 0;
}

/* ---- end --------------------------------------------------------------------------------------------- */

static int settle(struct load *load, struct ckpt_err *err) {
    struct device *device = load->pool->device;
    int rc = 0;
    if (load->filled != load->want.bytes)
        return err_os(err, EINVAL, "tensor %llu ends after %llu of %llu bytes",
            (unsigned long long)load->want.id, (unsigned long long)load->filled,
            (unsigned long long)load->want.bytes);
    if (quantized(load) && load->want.elements) {
        uint64_t blocks = (load->want.elements - 1) / DEQUANT_BLOCK + 1;
        cuda_ptr scales = load->staging + blocks * dequant_block_bytes(load->want.encoding);
        rc = device_convert(device, (enum convert_kind)load->kind, load->to, load->staging, scales,
            place_at(load), load->want.elements, err);
    }
    return rc ? rc : device_wait(device, err);
}

int load_end(struct load *load, uint64_t id, struct gpu_msg *ret_reply, int *ret_fd, struct ckpt_err *err) {
    if (!load->place || load->want.id != id)
        return not_loaded(id, err);
    const struct place *place = load->place;
    struct gpu_msg reply = {.type = GPU_READY,
        .u.ready = {.id = id,
            .bytes = place->bytes,
            .offset = place->offset,
            .block = place->block->size,
            .share = (uint8_t)place->block->share}};
    int rc = settle(load, err);
    if (!rc)
        rc = pool_share(load->pool, place, reply.u.ready.handle, ret_fd, err);
    if (rc) {
        (void)drop(load);
        return rc;
    }
    finish(load);
    *ret_reply = reply;
    return 0;
}

bool load_drop(struct load *load, uint64_t id, uint64_t *ret_given) {
    if (!load->place || load->want.id != id)
        return false;
    *ret_given = drop(load);
    return true;
}
