/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the CUDA driver's interface (libcuda.so.1) that the helper uses, declared here so that it
 * builds without the CUDA Toolkit. The numbers and layouts have been fixed since CUDA 10.2; tests/gpu/abi.c
 * compares them with the toolkit's cuda.h where there is one.
 */
#ifndef GPU_CUDA_ABI_H
#define GPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int cuda_result;     /* CUresult: 0 is success */
typedef int cuda_device;     /* CUdevice */
typedef uint64_t cuda_ptr;   /* CUdeviceptr */
typedef uint64_t cuda_alloc; /* CUmemGenericAllocationHandle */
typedef struct cuda_ctx_s *cuda_ctx;
typedef struct cuda_stream_s *cuda_stream;
typedef struct cuda_event_s *cuda_event;
typedef struct cuda_module_s *cuda_module;
typedef struct cuda_function_s *cuda_function;

struct cuda_uuid {
    uint8_t bytes[16];
};

struct cuda_ipc_handle {
    uint8_t bytes[64];
};

struct cuda_location {
    int type; /* CUDA_LOCATION_DEVICE */
    int id;   /* the device's ordinal */
};

struct cuda_alloc_prop {
    int type;         /* CUDA_ALLOC_PINNED */
    int handle_types; /* CUDA_HANDLE_FD */
    struct cuda_location location;
    void *win32;
    struct {
        uint8_t compression, rdma;
        uint16_t usage;
        uint8_t reserved[4];
    } flags;
};

struct cuda_access {
    struct cuda_location location;
    int flags; /* CUDA_ACCESS_READWRITE */
};

enum {
    CUDA_LOCATION_DEVICE = 1,
    CUDA_ALLOC_PINNED = 1,
    CUDA_HANDLE_FD = 1,
    CUDA_ACCESS_READWRITE = 3,
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_EVENT_BLOCKING_SYNC = 1,
    CUDA_EVENT_DISABLE_TIMING = 2,
    CUDA_GRANULARITY_MINIMUM = 0,
};

/* The results that the helper tells apart. */
enum {
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_STUB_LIBRARY = 34,
    CUDA_INSUFFICIENT_DRIVER = 35,
    CUDA_DEVICE_UNAVAILABLE = 46,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_DEVICE_NOT_LICENSED = 102,
    CUDA_INVALID_IMAGE = 200,
    CUDA_ECC_UNCORRECTABLE = 214,
    CUDA_OPERATING_SYSTEM = 304,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_LAUNCH_TIMEOUT = 702,
    CUDA_CONTEXT_IS_DESTROYED = 709,
    CUDA_ASSERT = 710,
    CUDA_HARDWARE_STACK_ERROR = 714,
    CUDA_LAUNCH_FAILED = 719, /* 714 to 719: a kernel crashed */
    CUDA_NOT_SUPPORTED = 801,
    CUDA_SYSTEM_NOT_READY = 802,
    CUDA_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_COMPAT_NOT_SUPPORTED = 804,
    CUDA_UNKNOWN = 999,
};

/* One row a call: its name, the symbol that has this signature, its parameters. */
#define CUDA_CALLS(ROW)                                                                                      \
    ROW(cuInit, cuInit, (unsigned flags))                                                                    \
    ROW(cuDriverGetVersion, cuDriverGetVersion, (int *version))                                              \
    ROW(cuGetErrorName, cuGetErrorName, (cuda_result result, const char **name))                             \
    ROW(cuDeviceGetCount, cuDeviceGetCount, (int *count))                                                    \
    ROW(cuDeviceGet, cuDeviceGet, (cuda_device * device, int ordinal))                                       \
    ROW(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, (cuda_device * device, const char *bus))               \
    ROW(cuDeviceGetName, cuDeviceGetName, (char *name, int len, cuda_device device))                         \
    ROW(cuDeviceGetUuid, cuDeviceGetUuid_v2, (struct cuda_uuid * uuid, cuda_device device))                  \
    ROW(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (cuda_ctx * ctx, cuda_device device))            \
    ROW(cuCtxSetCurrent, cuCtxSetCurrent, (cuda_ctx ctx))                                                    \
    ROW(cuMemGetInfo, cuMemGetInfo_v2, (size_t * free, size_t * total))                                      \
    ROW(cuMemAlloc, cuMemAlloc_v2, (cuda_ptr * at, size_t bytes))                                            \
    ROW(cuMemFree, cuMemFree_v2, (cuda_ptr at))                                                              \
    ROW(cuMemHostRegister, cuMemHostRegister_v2, (void *at, size_t bytes, unsigned flags))                   \
    ROW(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                             \
        (cuda_ptr to, const void *from, size_t bytes, cuda_stream stream))                                   \
    ROW(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                             \
        (void *to, cuda_ptr from, size_t bytes, cuda_stream stream))                                         \
    ROW(cuMemsetD8Async, cuMemsetD8Async,                                                                    \
        (cuda_ptr at, unsigned char value, size_t bytes, cuda_stream stream))                                \
    ROW(cuStreamCreate, cuStreamCreate, (cuda_stream * stream, unsigned flags))                              \
    ROW(cuStreamSynchronize, cuStreamSynchronize, (cuda_stream stream))                                      \
    ROW(cuEventCreate, cuEventCreate, (cuda_event * event, unsigned flags))                                  \
    ROW(cuEventRecord, cuEventRecord, (cuda_event event, cuda_stream stream))                                \
    ROW(cuEventSynchronize, cuEventSynchronize, (cuda_event event))                                          \
    ROW(cuModuleLoadData, cuModuleLoadData, (cuda_module * module, const void *image))                       \
    ROW(cuModuleGetFunction, cuModuleGetFunction,                                                            \
        (cuda_function * function, cuda_module module, const char *name))                                    \
    ROW(cuLaunchKernel, cuLaunchKernel,                                                                      \
        (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,        \
            unsigned block_y, unsigned block_z, unsigned shared, cuda_stream stream, void **params,          \
            void **extra))                                                                                   \
    ROW(cuIpcGetMemHandle, cuIpcGetMemHandle, (struct cuda_ipc_handle * handle, cuda_ptr at))                \
    ROW(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity,                                        \
        (size_t * bytes, const struct cuda_alloc_prop *prop, int option))                                    \
    ROW(cuMemCreate, cuMemCreate,                                                                            \
        (cuda_alloc * alloc, size_t bytes, const struct cuda_alloc_prop *prop, unsigned long long flags))    \
    ROW(cuMemRelease, cuMemRelease, (cuda_alloc alloc))                                                      \
    ROW(cuMemAddressReserve, cuMemAddressReserve,                                                            \
        (cuda_ptr * at, size_t bytes, size_t align, cuda_ptr wish, unsigned long long flags))                \
    ROW(cuMemAddressFree, cuMemAddressFree, (cuda_ptr at, size_t bytes))                                     \
    ROW(cuMemMap, cuMemMap,                                                                                  \
        (cuda_ptr at, size_t bytes, size_t offset, cuda_alloc alloc, unsigned long long flags))              \
    ROW(cuMemUnmap, cuMemUnmap, (cuda_ptr at, size_t bytes))                                                 \
    ROW(cuMemSetAccess, cuMemSetAccess,                                                                      \
        (cuda_ptr at, size_t bytes, const struct cuda_access *access, size_t count))                         \
    ROW(cuMemExportToShareableHandle, cuMemExportToShareableHandle,                                          \
        (void *handle, cuda_alloc alloc, int type, unsigned long long flags))

#endif
