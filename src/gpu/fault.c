/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int gpu_fault(struct ckpt_err *err, int os_errno, const char *fmt, ...) {
    char text[sizeof err->msg];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    err_set(err, CKPT_E_GPU, "%s", text);
    if (err)
        err->os_errno = os_errno;
    return CKPT_E_GPU;
}

int gpu_fault_of(struct ckpt_err *err) {
    err->os_errno = err->code == CKPT_E_IO && err->os_errno == ETIMEDOUT ? ETIMEDOUT : EIO;
    return err->code = CKPT_E_GPU;
}
