/* SPDX-License-Identifier: Apache-2.0 */
/* The helper's device: its primary context, one stream, the kernels, and the window that tensors come
 * through. */
#ifndef GPU_HELPER_DEVICE_H
#define GPU_HELPER_DEVICE_H

#include "gpu/convert.h"
#include "gpu/driver.h"
#include "gpu/proto.h"

struct device {
    struct driver driver;
    cuda_device handle;
    cuda_stream stream;                   /* everything is ordered by it */
    cuda_event copied;                    /* the window's bytes were taken */
    cuda_function kernels[CONVERT_COUNT]; /* all NULL when `lack` says why */
    char lack[GPU_NAME_MAX + 1];
    uint8_t *window; /* two halves */
    uint32_t half;
    bool pinned;
};

/* Starts the driver on the device that hello selects, with the window behind `memfd`, which stays the
 * caller's. Fills *ret_facts. The process ends with the device: nothing is ever closed. Errors: IO (ENODEV,
 * ENOMEM, EIO, EINVAL for a window that is not as it must be). */
int device_open(struct device *device, const struct gpu_hello *hello, int memfd, struct gpu_device *ret_facts,
    struct ckpt_err *err);

/* Bytes of the device's memory: of all, and what nobody uses now. */
int device_memory(struct device *device, uint64_t *ret_free, uint64_t *ret_total, struct ckpt_err *err);

/* Copies from the window, and returns when its bytes were taken. */
int device_copy(
    struct device *device, cuda_ptr to, const uint8_t *from, uint64_t bytes, struct ckpt_err *err);

/* Copies into the window, after what was started before, and waits for it. */
int device_read(struct device *device, uint8_t *to, cuda_ptr from, uint64_t bytes, struct ckpt_err *err);

/* Makes them zero, and waits for it. */
int device_clear(struct device *device, cuda_ptr at, uint64_t bytes, struct ckpt_err *err);

/* Starts the conversion of count elements (1 and more), after what was copied before. */
int device_convert(struct device *device, enum convert_kind kind, enum convert_to to, cuda_ptr in,
    cuda_ptr scales, cuda_ptr out, uint64_t count, struct ckpt_err *err);

/* Waits for everything that was started. */
int device_wait(struct device *device, struct ckpt_err *err);

#endif
