/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the device: CKPT_E_GPU with the errno that an open is to fail with. */
#ifndef GPU_FAULT_H
#define GPU_FAULT_H

#include "base/err.h"

/* Sets *err and returns CKPT_E_GPU. */
int gpu_fault(struct ckpt_err *err, int os_errno, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Makes one of an error that talking to the helper gave (*err is set): ETIMEDOUT stays, all else is EIO. */
int gpu_fault_of(struct ckpt_err *err);

#endif
