/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"
#define CUDA_VERSION_WANTED 12000 /* the calls as CUDA 12.0 had them, whatever the driver's own version */

/* cuGetProcAddress_v2: there since CUDA 12.0. */
typedef cuda_result lookup_fn(const char *name, void **ret, int version, uint64_t flags, int *status);

/* dlsym gives data pointers; POSIX lets them hold functions. */
static void set(void *pointer, void *symbol) {
    memcpy(pointer, &symbol, sizeof symbol);
}

static void *find(void *library, lookup_fn *lookup, const char *name, const char *symbol) {
    void *found = NULL;
    int status;
    if (lookup && lookup(name, &found, CUDA_VERSION_WANTED, 0, &status) == 0 && found)
        return found;
    return dlsym(library, symbol);
}

static int resolve(struct driver *driver, void *library, struct ckpt_err *err) {
    lookup_fn *lookup;
    set(&lookup, dlsym(library, "cuGetProcAddress_v2"));
#define RESOLVE(name, symbol, params)                                                                        \
    set(&driver->name, find(library, lookup, #name, #symbol));                                               \
    if (!driver->name)                                                                                       \
        return err_os(err, ENODEV, "%s lacks %s (a driver of CUDA 11.4 and later has it)", LIBRARY, #name);
    CUDA_CALLS(RESOLVE)
#undef RESOLVE
    return 0;
}

int driver_open(struct driver *driver, struct ckpt_err *err) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_os(err, ENODEV, "no CUDA driver: %s", dlerror());
    int rc = resolve(driver, library, err);
    return rc ? rc : driver_check(driver, driver->cuInit(0), err, "cuInit");
}

/* ---- results ----------------------------------------------------------------------------------------- */

static int errno_of(cuda_result result) {
    switch (result) {
    case CUDA_OUT_OF_MEMORY:
        return ENOMEM;
    case CUDA_STUB_LIBRARY:
    case CUDA_INSUFFICIENT_DRIVER:
    case CUDA_DEVICE_UNAVAILABLE:
    case CUDA_NO_DEVICE:
    case CUDA_INVALID_DEVICE:
    case CUDA_DEVICE_NOT_LICENSED:
    case CUDA_SYSTEM_NOT_READY:
    case CUDA_SYSTEM_DRIVER_MISMATCH:
    case CUDA_COMPAT_NOT_SUPPORTED:
        return ENODEV;
    default:
        return EIO;
    }
}

static bool breaks(cuda_result result) {
    return result == CUDA_ECC_UNCORRECTABLE || result == CUDA_ILLEGAL_ADDRESS ||
           result == CUDA_LAUNCH_TIMEOUT || result == CUDA_CONTEXT_IS_DESTROYED || result == CUDA_ASSERT ||
           (result >= CUDA_HARDWARE_STACK_ERROR && result <= CUDA_LAUNCH_FAILED) || result == CUDA_UNKNOWN;
}

int driver_check(struct driver *driver, cuda_result result, struct ckpt_err *err, const char *fmt, ...) {
    if (!result)
        return 0;
    char call[200];
    const char *name = NULL;
    va_list args;
    va_start(args, fmt);
    vsnprintf(call, sizeof call, fmt, args);
    va_end(args);
    if (driver->cuGetErrorName(result, &name) || !name)
        name = "an error without a name";
    driver->broken = driver->broken || breaks(result);
    return err_os(err, errno_of(result), "%s: %s (%d)", call, name, result);
}
