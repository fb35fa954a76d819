/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, contexts, names of results, and how calls are found. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool initialized;
static _Thread_local cuda_ctx current;

static int devices(void) {
    const char *given = getenv("CKPTFS_STANDIN_DEVICES");
    return given ? atoi(given) : 2;
}

static bool is_device(cuda_device device) {
    return initialized && device >= 0 && device < devices();
}

bool standin_has_context(void) {
    return current != NULL;
}

cuda_result cuInit(unsigned flags) {
    ENTER(cuInit);
    initialized = true;
    return flags ? STANDIN_INVALID_VALUE : devices() > 0 ? 0 : CUDA_NO_DEVICE;
}

cuda_result cuDriverGetVersion(int *version) {
    ENTER(cuDriverGetVersion);
    *version = 12040;
    return 0;
}

cuda_result cuDeviceGetCount(int *count) {
    ENTER(cuDeviceGetCount);
    *count = devices();
    return initialized ? 0 : STANDIN_NOT_INITIALIZED;
}

cuda_result cuDeviceGet(cuda_device *device, int ordinal) {
    ENTER(cuDeviceGet);
    *device = ordinal;
    return is_device(ordinal) ? 0 : CUDA_INVALID_DEVICE;
}

/* Device n is in slot n + 1. */
cuda_result cuDeviceGetByPCIBusId(cuda_device *device, const char *bus) {
    ENTER(cuDeviceGetByPCIBusId);
    unsigned slot = 0;
    int end = 0;
    if (sscanf(bus, "0000:%2x:00.0%n", &slot, &end) != 1 || bus[end])
        return STANDIN_INVALID_VALUE;
    *device = (int)slot - 1;
    return is_device(*device) ? 0 : CUDA_INVALID_DEVICE;
}

cuda_result cuDeviceGetName(char *name, int len, cuda_device device) {
    ENTER(cuDeviceGetName);
    snprintf(name, (size_t)len, "Stand-in %d", device);
    return is_device(device) ? 0 : CUDA_INVALID_DEVICE;
}

/* 5ad1 and the device's number. */
cuda_result cuDeviceGetUuid_v2(struct cuda_uuid *uuid, cuda_device device) {
    ENTER(cuDeviceGetUuid);
    memset(uuid, 0, sizeof *uuid);
    uuid->bytes[0] = 0x5a;
    uuid->bytes[1] = 0xd1;
    uuid->bytes[15] = (uint8_t)device;
    return is_device(device) ? 0 : CUDA_INVALID_DEVICE;
}

cuda_result cuDevicePrimaryCtxRetain(cuda_ctx *ctx, cuda_device device) {
    static char contexts[64];
    ENTER(cuDevicePrimaryCtxRetain);
    if (!is_device(device))
        return CUDA_INVALID_DEVICE;
    *ctx = (cuda_ctx)(void *)&contexts[device];
    return 0;
}

cuda_result cuCtxSetCurrent(cuda_ctx ctx) {
    ENTER(cuCtxSetCurrent);
    current = ctx;
    return 0;
}

cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device device) {
    ENTER(cuDevicePrimaryCtxRelease);
    return is_device(device) ? 0 : CUDA_INVALID_DEVICE;
}

static _Thread_local cuda_ctx below[8];
static _Thread_local unsigned depth;

cuda_result cuCtxPushCurrent_v2(cuda_ctx ctx) {
    ENTER(cuCtxPushCurrent);
    if (depth == sizeof below / sizeof *below)
        return STANDIN_INVALID_VALUE;
    below[depth++] = current;
    current = ctx;
    return 0;
}

cuda_result cuCtxPopCurrent_v2(cuda_ctx *ctx) {
    ENTER(cuCtxPopCurrent);
    if (!depth)
        return STANDIN_INVALID_CONTEXT;
    *ctx = current;
    current = below[--depth];
    return 0;
}

cuda_result cuGetErrorName(cuda_result result, const char **name) {
    static const struct {
        cuda_result result;
        const char *name;
    } rows[] = {{CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"}, {CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {CUDA_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"}, {CUDA_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY"},
        {CUDA_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}, {CUDA_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
        {CUDA_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {CUDA_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"}, {STANDIN_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_UNKNOWN, "CUDA_ERROR_UNKNOWN"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].result == result) {
            *name = rows[i].name;
            return 0;
        }
    return STANDIN_INVALID_VALUE;
}

/* ---- finding calls ----------------------------------------------------------------------------------- */

#define ROW(name, symbol, params) {#name, (void (*)(void))symbol},
static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {CUDA_CALLS(ROW){"cuIpcOpenMemHandle", (void (*)(void))cuIpcOpenMemHandle_v2},
    {"cuIpcCloseMemHandle", (void (*)(void))cuIpcCloseMemHandle},
    {"cuMemImportFromShareableHandle", (void (*)(void))cuMemImportFromShareableHandle},
    {"cuMemcpyDtoH", (void (*)(void))cuMemcpyDtoH_v2}};

cuda_result cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags, int *status) {
    ENTER(cuGetProcAddress);
    *ret = NULL;
    *status = 1; /* not found */
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].name, name)) {
            memcpy(ret, &calls[i].call, sizeof *ret);
            *status = 0;
        }
    return *ret && version >= 12000 && !flags ? 0 : STANDIN_NOT_FOUND;
}
