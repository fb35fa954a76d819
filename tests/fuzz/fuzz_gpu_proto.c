/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between the daemon and the GPU helper: what is accepted says the same when it is written again, byte
 * for byte, and keeps what the readers rely on. */
#include "fuzz.h"

#include "base/ovf.h"
#include "gpu/proto.h"

#include <string.h>

static void begin_holds(const struct gpu_begin *begin) {
    uint64_t stored, device;
    HOLDS(begin->dtype < DTYPE_COUNT && begin->encoding < ENCODING_COUNT && begin->target < GPU_TARGET_COUNT);
    HOLDS(begin->share < GPU_SHARE_COUNT);
    HOLDS(
        gpu_stored_bytes(begin->dtype, begin->encoding, begin->elements, &stored) && stored == begin->bytes);
    enum dtype result = gpu_result(begin->dtype, begin->encoding, begin->target);
    HOLDS(result < DTYPE_COUNT);
    (void)gpu_device_bytes(result, begin->elements, &device); /* may not fit */
}

static void text_holds(const char *text, size_t room) {
    HOLDS(memchr(text, 0, room));
    for (; *text; text++)
        HOLDS(*text >= 0x20 && *text < 0x7f);
}

static void message_holds(const struct gpu_msg *msg) {
    switch (msg->type) {
    case GPU_HELLO:
        HOLDS(
            msg->u.hello.half && msg->u.hello.half % GPU_HALF_MIN == 0 && msg->u.hello.half <= GPU_HALF_MAX);
        text_holds(msg->u.hello.selector, sizeof msg->u.hello.selector);
        break;
    case GPU_BEGIN:
        begin_holds(&msg->u.begin);
        break;
    case GPU_FILL:
    case GPU_WRITE:
    case GPU_READ:
        HOLDS(msg->u.fill.half < 2 && msg->u.fill.len && msg->u.fill.len <= GPU_HALF_MAX);
        break;
    case GPU_DEVICE:
        text_holds(msg->u.device.name, sizeof msg->u.device.name);
        text_holds(msg->u.device.lack, sizeof msg->u.device.lack);
        break;
    case GPU_READY:
        HOLDS(ovf_inside(msg->u.ready.offset, msg->u.ready.bytes, msg->u.ready.block));
        break;
    case GPU_ERROR:
        text_holds(msg->u.error.text, sizeof msg->u.error.text);
        HOLDS(msg->u.error.os_errno);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t frame[GPU_FRAME_MAX];
    struct gpu_msg msg;
    struct ckpt_err err = {0};
    int rc = gpu_decode(data, size, &msg, &err);
    fuzz_error_holds(rc, &err);
    HOLDS(!rc || rc == CKPT_E_CORRUPT || rc == CKPT_E_UNSUPPORTED);
    if (rc)
        return 0;
    message_holds(&msg);
    HOLDS(gpu_encode(&msg, frame) == size && !memcmp(frame, data, size));
    return 0;
}
