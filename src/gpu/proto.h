/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon and the GPU helper say to each other: doc/gpu-protocol.md in C. Pure: bytes to messages and
 * back, no descriptors, no allocation, no state. The frames' way over the socket is gpu/wire.h.
 *
 * Numbers are little-endian. A frame is one packet: u16 version, u16 type, the body; nothing may follow it.
 * Every request gets exactly one reply, in the order of the requests.
 */
#ifndef GPU_PROTO_H
#define GPU_PROTO_H

#include "base/err.h"
#include "catalog/catalog.h"

#define GPU_VERSION 1
#define GPU_SOCKET_FD 3 /* where the helper finds its end of the socket pair */
#define GPU_FRAME_MAX 1024
#define GPU_NAME_MAX 255        /* bytes of a device's name and of a selector */
#define GPU_TEXT_MAX 700        /* bytes of an error's text */
#define GPU_UUID_BYTES 16       /* as cuDeviceGetUuid gives it */
#define GPU_HANDLE_BYTES 64     /* a CUipcMemHandle */
#define GPU_PIECE 256           /* a fill has a multiple of this many bytes, unless it ends its tensor */
#define GPU_HALF_MIN 4096       /* bytes of each half of the window: a multiple of GPU_HALF_MIN, */
#define GPU_HALF_MAX (1u << 30) /* and no more than this */
#define GPU_ALIGN 256           /* a tensor starts at a multiple of it on the device */

/* Deadlines for the client, in milliseconds: past one, the helper counts as hung. The first reply waits for
 * the driver to start and perhaps to compile the kernels. */
#define GPU_HELLO_MS 120000
#define GPU_REPLY_MS 30000

enum gpu_type {
    GPU_HELLO = 1, /* requests */
    GPU_BEGIN,
    GPU_FILL,
    GPU_END,
    GPU_RELEASE,
    GPU_INFO,
    GPU_MAKE,
    GPU_WRITE,
    GPU_READ,
    GPU_DEVICE = 65, /* replies */
    GPU_ALLOCATED,
    GPU_FILLED,
    GPU_READY,
    GPU_RELEASED,
    GPU_MEMORY,
    GPU_ERROR,
    GPU_COPIED,
};

/* What a tensor becomes on the device. Types that do not convert (gpu_result) stay as stored. */
enum gpu_target { GPU_TARGET_STORED, GPU_TARGET_F32, GPU_TARGET_F16, GPU_TARGET_BF16, GPU_TARGET_COUNT };

enum gpu_share { GPU_SHARE_IPC, GPU_SHARE_FD, GPU_SHARE_COUNT };

/* Texts are printable ASCII, NUL-terminated here. */
struct gpu_hello {
    uint32_t half;                   /* bytes of each half of the window, which comes with the frame */
    char selector[GPU_NAME_MAX + 1]; /* "": the first device, "2": by number, "GPU-UUID", "0000:17:00.0" */
};

struct gpu_device {
    uint32_t ordinal;
    uint32_t driver;  /* as cuDriverGetVersion says: 12040 is 12.4 */
    uint64_t total;   /* bytes of device memory */
    uint64_t free;    /* of these now */
    uint64_t granule; /* allocations are multiples of it */
    bool pinned;      /* the window is page-locked; else copies go through the driver's own buffers */
    bool converts;    /* the kernels loaded; if not, `lack` says why */
    uint8_t uuid[GPU_UUID_BYTES];
    char name[GPU_NAME_MAX + 1];
    char lack[GPU_NAME_MAX + 1];
};

struct gpu_begin {
    uint64_t id; /* the client's choice, not that of a tensor which lives */
    uint64_t elements;
    uint64_t bytes; /* stored; gpu_stored_bytes(dtype, encoding, elements) */
    uint8_t dtype, encoding;
    uint8_t target; /* enum gpu_target */
    uint8_t share;  /* enum gpu_share */
};

struct gpu_allocated {
    uint64_t id;
    uint64_t bytes; /* of the tensor on the device */
    uint64_t taken; /* bytes of device memory that this tensor took anew; 0 when it fitted beside others */
    uint8_t dtype;  /* of the tensor on the device */
};

struct gpu_fill {
    uint64_t id;
    uint64_t off; /* in the stored bytes: where the fill before it ended */
    uint32_t len; /* 1 to half */
    uint8_t half; /* 0 or 1: which half of the window holds them, from its start */
};

struct gpu_filled {
    uint64_t id;
    uint8_t half; /* may be written again */
};

struct gpu_ready {
    uint64_t id;
    uint64_t bytes;                   /* of the tensor on the device */
    uint64_t offset;                  /* of its first byte in the allocation */
    uint64_t block;                   /* bytes of the allocation: what an importer of the descriptor maps */
    uint8_t share;                    /* GPU_SHARE_FD: the exported descriptor comes with the frame */
    uint8_t handle[GPU_HANDLE_BYTES]; /* GPU_SHARE_IPC, else zeros */
};

struct gpu_released {
    uint64_t id;
    uint64_t given; /* bytes of device memory that went back to the device; 0 while neighbours live */
};

struct gpu_memory {
    uint64_t total, free; /* of the device */
    uint64_t taken;       /* by this helper's tensors, whole allocations */
};

struct gpu_error {
    uint64_t id;       /* the request's, 0 where it has none */
    uint32_t os_errno; /* ENODEV ENOMEM EIO EINVAL EOPNOTSUPP ECANCELED, in Linux' generic numbers */
    char text[GPU_TEXT_MAX + 1];
};

struct gpu_id {
    uint64_t id;
};

/* Memory of zeros, which is READY at once: not a tensor of a file, but for the client to write to. */
struct gpu_make {
    uint64_t id;
    uint64_t bytes; /* not 0 */
    uint8_t share;  /* enum gpu_share */
};

struct gpu_msg {
    enum gpu_type type;
    union {
        struct gpu_hello hello;
        struct gpu_begin begin;
        struct gpu_fill fill, write, read; /* write, read: off anywhere in what is READY */
        struct gpu_id end, release;
        struct gpu_make make;
        struct gpu_device device;
        struct gpu_allocated allocated;
        struct gpu_filled filled, copied;
        struct gpu_ready ready;
        struct gpu_released released;
        struct gpu_memory memory;
        struct gpu_error error;
    } u;
};

/* Writes msg into frame; returns its length. Texts that are too long are cut, bytes that are not printable
 * ASCII become '?'. */
size_t gpu_encode(const struct gpu_msg *msg, uint8_t frame[GPU_FRAME_MAX]);

/* Reads one frame. Errors: CORRUPT (too short, bytes left over, a value out of range), UNSUPPORTED (another
 * version). */
int gpu_decode(const uint8_t *frame, size_t len, struct gpu_msg *ret_msg, struct ckpt_err *err);

/* The type that a tensor has on the device: quantized ones and floats of at most 32 bits become the target
 * (stored: F32 when quantized); everything else stays what it is. */
enum dtype gpu_result(enum dtype dtype, enum encoding encoding, enum gpu_target target);

/* Bytes of a tensor in the file and on the device; false when they do not fit 64 bits. */
bool gpu_stored_bytes(enum dtype dtype, enum encoding encoding, uint64_t elements, uint64_t *ret_bytes);
bool gpu_device_bytes(enum dtype result, uint64_t elements, uint64_t *ret_bytes);

#endif
