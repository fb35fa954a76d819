/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads device memory that the helper shares, as another process would, and writes it to standard output:
 *
 *   peek DEVICE ipc HANDLE OFFSET BYTES      HANDLE in hex
 *   peek DEVICE fd NUMBER BLOCK OFFSET BYTES the descriptor NUMBER, an allocation of BLOCK bytes
 *
 * With the real driver or the stand-in, whichever is found as libcuda.so.1.
 */
#include "gpu/cuda_abi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "peek: %s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    return found;
}

/* Calls symbol `name` with the type of `params`; ends the process when it fails. */
#define CALL(name, params, ...)                                                                              \
    do {                                                                                                     \
        cuda_result(*call_) params;                                                                          \
        void *found_ = symbol(#name);                                                                        \
        memcpy(&call_, &found_, sizeof found_);                                                              \
        cuda_result result_ = call_(__VA_ARGS__);                                                            \
        if (result_) {                                                                                       \
            fprintf(stderr, "peek: " #name ": %d\n", result_);                                               \
            exit(EXIT_FAILURE);                                                                              \
        }                                                                                                    \
    } while (0)

static cuda_device start(int ordinal) {
    cuda_device device = 0;
    cuda_ctx ctx = NULL;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "peek: %s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGet, (cuda_device *, int), &device, ordinal);
    CALL(cuDevicePrimaryCtxRetain, (cuda_ctx *, cuda_device), &ctx, device);
    CALL(cuCtxSetCurrent, (cuda_ctx), ctx);
    return device;
}

static cuda_ptr open_ipc(const char *hex) {
    struct cuda_ipc_handle handle = {0};
    cuda_ptr at = 0;
    for (size_t i = 0; i < sizeof handle.bytes; i++)
        if (sscanf(hex + 2 * i, "%2hhx", &handle.bytes[i]) != 1)
            exit(EXIT_FAILURE);
    CALL(cuIpcOpenMemHandle_v2, (cuda_ptr *, struct cuda_ipc_handle, unsigned), &at, handle, 1);
    return at;
}

static cuda_ptr open_fd(cuda_device device, int fd, size_t block) {
    struct cuda_access access = {
        .location = {.type = CUDA_LOCATION_DEVICE, .id = device}, .flags = CUDA_ACCESS_READWRITE};
    cuda_alloc alloc = 0;
    cuda_ptr at = 0;
    CALL(cuMemImportFromShareableHandle, (cuda_alloc *, void *, int), &alloc, (void *)(intptr_t)fd,
        CUDA_HANDLE_FD);
    CALL(
        cuMemAddressReserve, (cuda_ptr *, size_t, size_t, cuda_ptr, unsigned long long), &at, block, 0, 0, 0);
    CALL(cuMemMap, (cuda_ptr, size_t, size_t, cuda_alloc, unsigned long long), at, block, 0, alloc, 0);
    CALL(cuMemSetAccess, (cuda_ptr, size_t, const struct cuda_access *, size_t), at, block, &access, 1);
    CALL(cuMemRelease, (cuda_alloc), alloc); /* what is mapped stays */
    return at;
}

int main(int argc, char **argv) {
    bool ipc = argc == 6 && !strcmp(argv[2], "ipc") && strlen(argv[3]) == 128;
    if (!ipc && !(argc == 7 && !strcmp(argv[2], "fd"))) {
        fprintf(stderr, "peek DEVICE ipc HANDLE OFFSET BYTES | peek DEVICE fd NUMBER BLOCK OFFSET BYTES\n");
        return EXIT_FAILURE;
    }
    cuda_device device = start(atoi(argv[1]));
    cuda_ptr base = ipc ? open_ipc(argv[3]) : open_fd(device, atoi(argv[3]), strtoull(argv[4], NULL, 10));
    size_t offset = strtoull(argv[argc - 2], NULL, 10), bytes = strtoull(argv[argc - 1], NULL, 10);
    void *copy = malloc(bytes + 1);
    if (!copy)
        return EXIT_FAILURE;
    if (bytes)
        CALL(cuMemcpyDtoH_v2, (void *, cuda_ptr, size_t), copy, base + offset, bytes);
    bool written = fwrite(copy, 1, bytes, stdout) == bytes && fflush(stdout) == 0;
    free(copy);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}
