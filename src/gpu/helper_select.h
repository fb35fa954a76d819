/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPU_HELPER_SELECT_H
#define GPU_HELPER_SELECT_H

#include "gpu/driver.h"

/* The device that a selector names: "" is the first, "2" a number, "GPU-" and a UUID, else a PCI bus id.
 * Errors: IO with os_errno ENODEV, or what the driver says. */
int device_select(struct driver *driver, const char *selector, cuda_device *ret_device, struct ckpt_err *err);

#endif
