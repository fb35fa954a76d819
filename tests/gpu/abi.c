/* SPDX-License-Identifier: Apache-2.0 */
/* gpu/cuda_abi.h against the CUDA Toolkit's cuda.h: sizes, places and numbers; and that each call has the
 * type that cuda.h gives the same symbol. All of it is the compiler's doing: the program itself does nothing.
 */
#include "gpu/cuda_abi.h"

#include <cuda.h>
#include <stddef.h>

#define SAME_SIZE(a, b) _Static_assert(sizeof(a) == sizeof(b), #a)
#define SAME_PLACE(a, field, b, other)                                                                       \
    _Static_assert(offsetof(a, field) == offsetof(b, other) && sizeof((a){0}.field) == sizeof((b){0}.other), \
        #a "." #field)
#define SAME_VALUE(a, b) _Static_assert((int)a == (int)b, #a)

SAME_SIZE(cuda_result, CUresult);
SAME_SIZE(cuda_device, CUdevice);
SAME_SIZE(cuda_ptr, CUdeviceptr);
SAME_SIZE(cuda_alloc, CUmemGenericAllocationHandle);
SAME_SIZE(cuda_ctx, CUcontext);
SAME_SIZE(cuda_stream, CUstream);
SAME_SIZE(cuda_event, CUevent);
SAME_SIZE(cuda_module, CUmodule);
SAME_SIZE(cuda_function, CUfunction);
SAME_SIZE(struct cuda_uuid, CUuuid);
SAME_SIZE(struct cuda_ipc_handle, CUipcMemHandle);

SAME_SIZE(struct cuda_location, CUmemLocation);
SAME_PLACE(struct cuda_location, type, CUmemLocation, type);
SAME_PLACE(struct cuda_location, id, CUmemLocation, id);
SAME_SIZE(struct cuda_access, CUmemAccessDesc);
SAME_PLACE(struct cuda_access, location, CUmemAccessDesc, location);
SAME_PLACE(struct cuda_access, flags, CUmemAccessDesc, flags);
SAME_SIZE(struct cuda_alloc_prop, CUmemAllocationProp);
SAME_PLACE(struct cuda_alloc_prop, type, CUmemAllocationProp, type);
SAME_PLACE(struct cuda_alloc_prop, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_PLACE(struct cuda_alloc_prop, location, CUmemAllocationProp, location);
SAME_PLACE(struct cuda_alloc_prop, win32, CUmemAllocationProp, win32HandleMetaData);
SAME_PLACE(struct cuda_alloc_prop, flags, CUmemAllocationProp, allocFlags);

SAME_VALUE(CUDA_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(CUDA_ALLOC_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_VALUE(CUDA_HANDLE_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_VALUE(CUDA_ACCESS_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME_VALUE(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_VALUE(CUDA_EVENT_BLOCKING_SYNC, CU_EVENT_BLOCKING_SYNC);
SAME_VALUE(CUDA_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME_VALUE(CUDA_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);

SAME_VALUE(CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(CUDA_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME_VALUE(
    CUDA_INSUFFICIENT_DRIVER, 35); /* cudaErrorInsufficientDriver: the runtime's, some drivers say it */
SAME_VALUE(CUDA_DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME_VALUE(CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME_VALUE(CUDA_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME_VALUE(CUDA_DEVICE_NOT_LICENSED, CUDA_ERROR_DEVICE_NOT_LICENSED);
SAME_VALUE(CUDA_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME_VALUE(CUDA_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME_VALUE(CUDA_OPERATING_SYSTEM, CUDA_ERROR_OPERATING_SYSTEM);
SAME_VALUE(CUDA_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_VALUE(CUDA_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME_VALUE(CUDA_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME_VALUE(CUDA_ASSERT, CUDA_ERROR_ASSERT);
SAME_VALUE(CUDA_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME_VALUE(CUDA_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME_VALUE(CUDA_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME_VALUE(CUDA_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME_VALUE(CUDA_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME_VALUE(CUDA_COMPAT_NOT_SUPPORTED, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
SAME_VALUE(CUDA_UNKNOWN, CUDA_ERROR_UNKNOWN);

/* The toolkit's type of a call takes the arguments that ours is given: a call that does not compile is a
 * fault. */
static inline __attribute__((unused)) int takes(void) {
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle alloc = 0;
    CUmemAllocationProp prop = {0};
    CUmemAccessDesc access = {0};
    CUipcMemHandle handle;
    CUfunction function = NULL;
    CUuuid uuid;
    size_t size = 0;
    void *params[1] = {0};
    int fd;
    return (int)(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) |
                 cuMemCreate(&alloc, size, &prop, 0ull) | cuMemAddressReserve(&at, size, size, at, 0ull) |
                 cuMemMap(at, size, size, alloc, 0ull) | cuMemSetAccess(at, size, &access, size) |
                 cuMemExportToShareableHandle(&fd, alloc, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull) |
                 cuMemUnmap(at, size) | cuMemAddressFree(at, size) | cuMemRelease(alloc) |
                 cuIpcGetMemHandle(&handle, at) | cuDeviceGetUuid(&uuid, 0) |
                 cuMemcpyHtoDAsync(at, params, size, NULL) |
                 cuLaunchKernel(function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, NULL, params, NULL));
}

int main(void) {
    return 0;
}
