/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/proto.h"

#include "base/ovf.h"
#include "base/rd.h"
#include "dequant/dequant.h"

#include <errno.h>

/*
 * One list of fields a message serves both ways: a `way` either writes a frame or reads one, so that the two
 * cannot disagree. A fault is remembered and looked at once, at the end.
 */
struct way {
    struct rd rd;    /* reading */
    uint8_t *frame;  /* writing, when not NULL */
    size_t len;      /* written so far */
    const char *bad; /* the first field out of range */
};

static void number(
    struct way *way, uint64_t *value, size_t width, uint64_t min, uint64_t max, const char *what) {
    if (way->frame) {
        for (size_t i = 0; i < width; i++)
            way->frame[way->len++] = (uint8_t)(*value >> (8 * i));
        return;
    }
    *value = rd_le(&way->rd, width);
    if ((*value < min || *value > max) && !way->bad)
        way->bad = what;
}

static void u64(struct way *way, uint64_t *field) {
    number(way, field, 8, 0, UINT64_MAX, NULL);
}

static void u32(struct way *way, uint32_t *field, uint32_t min, uint32_t max, const char *what) {
    uint64_t value = *field;
    number(way, &value, 4, min, max, what);
    *field = (uint32_t)value;
}

static void u8(struct way *way, uint8_t *field, unsigned count, const char *what) {
    uint64_t value = *field;
    number(way, &value, 1, 0, count - 1, what);
    *field = (uint8_t)value;
}

static void flag(struct way *way, bool *field, const char *what) {
    uint64_t value = *field;
    number(way, &value, 1, 0, 1, what);
    *field = value != 0;
}

static void bytes(struct way *way, uint8_t *field, size_t len) {
    if (way->frame) {
        memcpy(way->frame + way->len, field, len);
        way->len += len;
        return;
    }
    const uint8_t *at = rd_bytes(&way->rd, len);
    if (at)
        memcpy(field, at, len);
}

static bool printable(unsigned char c) {
    return c >= 0x20 && c < 0x7f;
}

static void put_text(struct way *way, const char *field, size_t max) {
    uint64_t len = strnlen(field, max);
    number(way, &len, 2, 0, max, NULL);
    for (size_t i = 0; i < len; i++)
        way->frame[way->len++] = printable((unsigned char)field[i]) ? (uint8_t)field[i] : '?';
}

/* field has room for max bytes and a NUL. */
static void text(struct way *way, char *field, size_t max, const char *what) {
    if (way->frame) {
        put_text(way, field, max);
        return;
    }
    uint64_t len = 0;
    number(way, &len, 2, 0, max, what);
    const uint8_t *at = len <= max ? rd_bytes(&way->rd, len) : NULL;
    memset(field, 0, max + 1);
    for (size_t i = 0; at && i < len; i++) {
        field[i] = (char)at[i];
        if (!printable(at[i]) && !way->bad)
            way->bad = what;
    }
}

/* ---- the messages ------------------------------------------------------------------------------------ */

static void hello(struct way *way, struct gpu_hello *msg) {
    u32(way, &msg->half, GPU_HALF_MIN, GPU_HALF_MAX, "half");
    if (!way->frame && msg->half % GPU_HALF_MIN && !way->bad)
        way->bad = "half";
    text(way, msg->selector, GPU_NAME_MAX, "selector");
}

static void begin(struct way *way, struct gpu_begin *msg) {
    uint64_t stored = 0;
    u64(way, &msg->id);
    u64(way, &msg->elements);
    u64(way, &msg->bytes);
    u8(way, &msg->dtype, DTYPE_COUNT, "dtype");
    u8(way, &msg->encoding, ENCODING_COUNT, "encoding");
    u8(way, &msg->target, GPU_TARGET_COUNT, "target");
    u8(way, &msg->share, GPU_SHARE_COUNT, "share");
    if (way->frame || way->bad)
        return;
    if (msg->encoding != ENCODING_DENSE && msg->dtype != DTYPE_F32)
        way->bad = "encoding";
    else if (!gpu_stored_bytes(msg->dtype, msg->encoding, msg->elements, &stored) || stored != msg->bytes)
        way->bad = "bytes";
}

static void fill(struct way *way, struct gpu_fill *msg) {
    u64(way, &msg->id);
    u64(way, &msg->off);
    u32(way, &msg->len, 1, GPU_HALF_MAX, "len");
    u8(way, &msg->half, 2, "half");
}

static void make(struct way *way, struct gpu_make *msg) {
    u64(way, &msg->id);
    number(way, &msg->bytes, 8, 1, UINT64_MAX, "bytes");
    u8(way, &msg->share, GPU_SHARE_COUNT, "share");
}

static void device(struct way *way, struct gpu_device *msg) {
    u32(way, &msg->ordinal, 0, UINT32_MAX, NULL);
    u32(way, &msg->driver, 0, UINT32_MAX, NULL);
    u64(way, &msg->total);
    u64(way, &msg->free);
    u64(way, &msg->granule);
    flag(way, &msg->pinned, "pinned");
    flag(way, &msg->converts, "converts");
    bytes(way, msg->uuid, sizeof msg->uuid);
    text(way, msg->name, GPU_NAME_MAX, "name");
    text(way, msg->lack, GPU_NAME_MAX, "lack");
}

static void allocated(struct way *way, struct gpu_allocated *msg) {
    u64(way, &msg->id);
    u64(way, &msg->bytes);
    u64(way, &msg->taken);
    u8(way, &msg->dtype, DTYPE_COUNT, "dtype");
}

static void filled(struct way *way, struct gpu_filled *msg) {
    u64(way, &msg->id);
    u8(way, &msg->half, 2, "half");
}

static void ready(struct way *way, struct gpu_ready *msg) {
    u64(way, &msg->id);
    u64(way, &msg->bytes);
    u64(way, &msg->offset);
    u64(way, &msg->block);
    u8(way, &msg->share, GPU_SHARE_COUNT, "share");
    bytes(way, msg->handle, sizeof msg->handle);
    if (!way->frame && !way->bad && !ovf_inside(msg->offset, msg->bytes, msg->block))
        way->bad = "offset";
}

static void released(struct way *way, struct gpu_released *msg) {
    u64(way, &msg->id);
    u64(way, &msg->given);
}

static void memory(struct way *way, struct gpu_memory *msg) {
    u64(way, &msg->total);
    u64(way, &msg->free);
    u64(way, &msg->taken);
}

static bool known_errno(uint32_t os_errno) {
    return os_errno == ENODEV || os_errno == ENOMEM || os_errno == EIO || os_errno == EINVAL ||
           os_errno == EOPNOTSUPP || os_errno == ECANCELED;
}

static void error(struct way *way, struct gpu_error *msg) {
    u64(way, &msg->id);
    u32(way, &msg->os_errno, 0, UINT32_MAX, NULL);
    text(way, msg->text, GPU_TEXT_MAX, "text");
    if (!way->frame && !known_errno(msg->os_errno) && !way->bad)
        way->bad = "errno";
}

/* False: there is no such type. */
static bool body(struct way *way, struct gpu_msg *msg) {
    switch (msg->type) {
    case GPU_HELLO:
        return hello(way, &msg->u.hello), true;
    case GPU_BEGIN:
        return begin(way, &msg->u.begin), true;
    case GPU_FILL:
        return fill(way, &msg->u.fill), true;
    case GPU_END:
        return u64(way, &msg->u.end.id), true;
    case GPU_RELEASE:
        return u64(way, &msg->u.release.id), true;
    case GPU_INFO:
        return true;
    case GPU_MAKE:
        return make(way, &msg->u.make), true;
    case GPU_WRITE:
        return fill(way, &msg->u.write), true;
    case GPU_READ:
        return fill(way, &msg->u.read), true;
    case GPU_DEVICE:
        return device(way, &msg->u.device), true;
    case GPU_ALLOCATED:
        return allocated(way, &msg->u.allocated), true;
    case GPU_FILLED:
        return filled(way, &msg->u.filled), true;
    case GPU_READY:
        return ready(way, &msg->u.ready), true;
    case GPU_RELEASED:
        return released(way, &msg->u.released), true;
    case GPU_MEMORY:
        return memory(way, &msg->u.memory), true;
    case GPU_ERROR:
        return error(way, &msg->u.error), true;
    case GPU_COPIED:
        return filled(way, &msg->u.copied), true;
    }
    return false;
}

size_t gpu_encode(const struct gpu_msg *msg, uint8_t frame[GPU_FRAME_MAX]) {
    struct gpu_msg copy = *msg; /* writing changes nothing, but the way is the same */
    struct way way = {.frame = frame};
    uint64_t version = GPU_VERSION, type = msg->type;
    number(&way, &version, 2, 0, UINT16_MAX, NULL);
    number(&way, &type, 2, 0, UINT16_MAX, NULL);
    (void)body(&way, &copy);
    return way.len;
}

int gpu_decode(const uint8_t *frame, size_t len, struct gpu_msg *ret_msg, struct ckpt_err *err) {
    struct gpu_msg msg;
    struct way way = {.rd = rd_over(frame, len)};
    memset(&msg, 0, sizeof msg);
    unsigned version = (unsigned)rd_le(&way.rd, 2), type = (unsigned)rd_le(&way.rd, 2);
    if (way.rd.short_ || len > GPU_FRAME_MAX)
        return err_set(err, CKPT_E_CORRUPT, "GPU helper protocol: a frame of %zu bytes", len);
    if (version != GPU_VERSION)
        return err_set(
            err, CKPT_E_UNSUPPORTED, "GPU helper protocol: version %u, not %d", version, GPU_VERSION);
    msg.type = (enum gpu_type)type;
    if (!body(&way, &msg))
        return err_set(err, CKPT_E_CORRUPT, "GPU helper protocol: no message has type %u", type);
    if (way.rd.short_)
        return err_set(err, CKPT_E_CORRUPT, "GPU helper protocol: type %u ends after %zu bytes", type, len);
    if (way.bad)
        return err_set(err, CKPT_E_CORRUPT, "GPU helper protocol: type %u has a wrong %s", type, way.bad);
    if (way.rd.left)
        return err_set(
            err, CKPT_E_CORRUPT, "GPU helper protocol: type %u has %zu bytes left over", type, way.rd.left);
    *ret_msg = msg;
    return 0;
}

/* ---- what becomes of a tensor ------------------------------------------------------------------------ */

static bool converts(enum dtype dtype) {
    return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype_table[dtype].widens;
}

enum dtype gpu_result(enum dtype dtype, enum encoding encoding, enum gpu_target target) {
    static const enum dtype becomes[GPU_TARGET_COUNT] = {
        [GPU_TARGET_F32] = DTYPE_F32, [GPU_TARGET_F16] = DTYPE_F16, [GPU_TARGET_BF16] = DTYPE_BF16};
    if (target == GPU_TARGET_STORED || (encoding == ENCODING_DENSE && !converts(dtype)))
        return dtype; /* a quantized tensor's is F32 */
    return becomes[target];
}

/* Whole bytes are counted as such: they go further than bits. */
bool gpu_device_bytes(enum dtype result, uint64_t elements, uint64_t *ret_bytes) {
    unsigned bits = dtype_table[result].bits;
    if (bits % 8 == 0)
        return ovf_mul(elements, bits / 8, ret_bytes);
    uint64_t product;
    if (!ovf_mul(elements, bits, &product) || product % 8)
        return false;
    *ret_bytes = product / 8;
    return true;
}

bool gpu_stored_bytes(enum dtype dtype, enum encoding encoding, uint64_t elements, uint64_t *ret_bytes) {
    if (encoding == ENCODING_DENSE)
        return gpu_device_bytes(dtype, elements, ret_bytes);
    uint64_t blocks = elements / DEQUANT_BLOCK + (elements % DEQUANT_BLOCK != 0);
    return ovf_mul(blocks, dequant_block_bytes(encoding) + 4, ret_bytes);
}
