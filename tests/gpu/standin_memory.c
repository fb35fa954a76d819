/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: memfds, so that other processes can open it. One thread of a process uses it. */
#include "standin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRANULE (2u << 20)
#define NOISE 0xa5 /* what fresh memory holds */

/* cuMemCreate's: lives while its handle or a mapping does. */
struct alloc {
    int fd;
    uint64_t bytes;
    unsigned users;
    bool foreign;
};

/* cuMemAlloc's, or a range of addresses with what is mapped there. */
struct memory {
    struct memory *next;
    void *at;
    uint64_t bytes;
    int fd; /* -1: reserved only */
    struct alloc *alloc;
    bool accessible, foreign;
};

static struct memory *memories;
static uint64_t used;

static uint64_t total(void) {
    const char *given = getenv("CKPTFS_STANDIN_MEMORY");
    return given ? strtoull(given, NULL, 10) : 1u << 30;
}

cuda_result cuMemGetInfo_v2(size_t *free, size_t *all) {
    ENTER(cuMemGetInfo);
    *all = total();
    *free = total() - used;
    return standin_has_context() ? 0 : STANDIN_INVALID_CONTEXT;
}

/* A memfd of the device's; -1 when it has no more. */
static int take(uint64_t bytes) {
    uint64_t whole = (bytes + GRANULE - 1) / GRANULE * GRANULE;
    int fd = whole <= total() - used ? memfd_create("standin", MFD_CLOEXEC) : -1;
    if (fd < 0 || ftruncate(fd, (off_t)whole))
        return -1;
    used += whole;
    return fd;
}

static void give(int fd) {
    struct stat stat;
    if (fstat(fd, &stat) == 0)
        used -= (uint64_t)stat.st_size;
    close(fd);
}

static struct memory *add(void *at, uint64_t bytes, int fd, bool accessible) {
    struct memory *memory = malloc(sizeof *memory);
    if (!memory)
        abort();
    *memory = (struct memory){.next = memories, .at = at, .bytes = bytes, .fd = fd, .accessible = accessible};
    return memories = memory;
}

static cuda_ptr pointer(const void *at) {
    return (cuda_ptr)(uintptr_t)at;
}

static struct memory *find(cuda_ptr at) {
    struct memory *memory = memories;
    while (memory && pointer(memory->at) != at)
        memory = memory->next;
    return memory;
}

static void drop(struct memory *memory) {
    struct memory **link = &memories;
    while (*link != memory)
        link = &(*link)->next;
    *link = memory->next;
    munmap(memory->at, memory->bytes);
    free(memory);
}

bool standin_inside(cuda_ptr at, uint64_t bytes) {
    for (const struct memory *memory = memories; memory; memory = memory->next)
        if (memory->accessible && at >= pointer(memory->at) && at - pointer(memory->at) <= memory->bytes &&
            bytes <= memory->bytes - (at - pointer(memory->at)))
            return true;
    return false;
}

/* ---- cuMemAlloc -------------------------------------------------------------------------------------- */

cuda_result cuMemAlloc_v2(cuda_ptr *at, size_t bytes) {
    ENTER(cuMemAlloc);
    if (!standin_has_context() || !bytes)
        return bytes ? STANDIN_INVALID_CONTEXT : STANDIN_INVALID_VALUE;
    int fd = take(bytes);
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return CUDA_OUT_OF_MEMORY;
    memset(mapped, NOISE, bytes);
    *at = pointer(add(mapped, bytes, fd, true)->at);
    return 0;
}

cuda_result cuMemFree_v2(cuda_ptr at) {
    ENTER(cuMemFree);
    struct memory *memory = find(at);
    if (!memory || memory->fd < 0 || memory->foreign)
        return STANDIN_INVALID_VALUE;
    standin_finish_all();
    give(memory->fd);
    drop(memory);
    return 0;
}

/* "PID FD BYTES" */
cuda_result cuIpcGetMemHandle(struct cuda_ipc_handle *handle, cuda_ptr at) {
    ENTER(cuIpcGetMemHandle);
    const struct memory *memory = find(at);
    if (!memory || memory->fd < 0 || memory->bytes % GRANULE)
        return STANDIN_INVALID_VALUE; /* what shares its 2 MiB with others would be shared with them */
    memset(handle, 0, sizeof *handle);
    snprintf((char *)handle->bytes, sizeof handle->bytes, "%d %d %llu", (int)getpid(), memory->fd,
        (unsigned long long)memory->bytes);
    return 0;
}

cuda_result cuIpcOpenMemHandle_v2(cuda_ptr *at, struct cuda_ipc_handle handle, unsigned flags) {
    ENTER(cuIpcOpenMemHandle);
    char path[64];
    int pid, number;
    unsigned long long bytes;
    handle.bytes[sizeof handle.bytes - 1] = 0;
    if (flags != 1 || sscanf((char *)handle.bytes, "%d %d %llu", &pid, &number, &bytes) != 3)
        return STANDIN_INVALID_VALUE;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return STANDIN_INVALID_VALUE;
    struct memory *memory = add(mapped, bytes, fd, true);
    memory->foreign = true;
    *at = pointer(memory->at);
    return 0;
}

cuda_result cuIpcCloseMemHandle(cuda_ptr at) {
    ENTER(cuIpcCloseMemHandle);
    struct memory *memory = find(at);
    if (!memory || !memory->foreign)
        return STANDIN_INVALID_VALUE;
    close(memory->fd);
    drop(memory);
    return 0;
}

/* ---- cuMemCreate ------------------------------------------------------------------------------------- */

static bool exportable(const struct cuda_alloc_prop *prop) {
    return prop->type == CUDA_ALLOC_PINNED && prop->handle_types == CUDA_HANDLE_FD &&
           prop->location.type == CUDA_LOCATION_DEVICE;
}

cuda_result cuMemGetAllocationGranularity(size_t *bytes, const struct cuda_alloc_prop *prop, int option) {
    ENTER(cuMemGetAllocationGranularity);
    *bytes = GRANULE;
    return exportable(prop) && option == CUDA_GRANULARITY_MINIMUM ? 0 : STANDIN_INVALID_VALUE;
}

cuda_result cuMemCreate(
    cuda_alloc *handle, size_t bytes, const struct cuda_alloc_prop *prop, unsigned long long flags) {
    ENTER(cuMemCreate);
    if (!bytes || bytes % GRANULE || flags || !exportable(prop))
        return STANDIN_INVALID_VALUE;
    struct alloc *alloc = malloc(sizeof *alloc);
    int fd = take(bytes);
    if (fd < 0 || !alloc) {
        free(alloc);
        return CUDA_OUT_OF_MEMORY;
    }
    *alloc = (struct alloc){.fd = fd, .bytes = bytes, .users = 1};
    *handle = (cuda_alloc)(uintptr_t)alloc;
    return 0;
}

static struct alloc *of_handle(cuda_alloc handle) {
    return (struct alloc *)(uintptr_t)handle;
}

static void leave(struct alloc *alloc) {
    if (--alloc->users)
        return;
    if (alloc->foreign)
        close(alloc->fd);
    else
        give(alloc->fd);
    free(alloc);
}

cuda_result cuMemRelease(cuda_alloc handle) {
    ENTER(cuMemRelease);
    leave(of_handle(handle));
    return 0;
}

cuda_result cuMemExportToShareableHandle(void *fd, cuda_alloc handle, int type, unsigned long long flags) {
    ENTER(cuMemExportToShareableHandle);
    if (type != CUDA_HANDLE_FD || flags)
        return STANDIN_INVALID_VALUE;
    int copy = fcntl(of_handle(handle)->fd, F_DUPFD_CLOEXEC, 3);
    memcpy(fd, &copy, sizeof copy);
    return copy < 0 ? CUDA_OPERATING_SYSTEM : 0;
}

/* The descriptor itself is the handle; it stays the caller's. */
cuda_result cuMemImportFromShareableHandle(cuda_alloc *handle, void *fd, int type) {
    ENTER(cuMemImportFromShareableHandle);
    struct stat stat;
    int copy = fcntl((int)(intptr_t)fd, F_DUPFD_CLOEXEC, 3);
    struct alloc *alloc = malloc(sizeof *alloc);
    if (!alloc || type != CUDA_HANDLE_FD || copy < 0 || fstat(copy, &stat)) {
        free(alloc);
        return STANDIN_INVALID_VALUE;
    }
    *alloc = (struct alloc){.fd = copy, .bytes = (uint64_t)stat.st_size, .users = 1, .foreign = true};
    *handle = (cuda_alloc)(uintptr_t)alloc;
    return 0;
}

cuda_result cuMemAddressReserve(
    cuda_ptr *at, size_t bytes, size_t align, cuda_ptr wish, unsigned long long flags) {
    ENTER(cuMemAddressReserve);
    if (!bytes || bytes % GRANULE || align || wish || flags)
        return STANDIN_INVALID_VALUE;
    void *mapped = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return CUDA_OUT_OF_MEMORY;
    *at = pointer(add(mapped, bytes, -1, false)->at);
    return 0;
}

cuda_result cuMemAddressFree(cuda_ptr at, size_t bytes) {
    ENTER(cuMemAddressFree);
    struct memory *memory = find(at);
    if (!memory || memory->fd >= 0 || memory->bytes != bytes)
        return STANDIN_INVALID_VALUE;
    drop(memory);
    return 0;
}

cuda_result cuMemMap(cuda_ptr at, size_t bytes, size_t offset, cuda_alloc handle, unsigned long long flags) {
    ENTER(cuMemMap);
    struct memory *memory = find(at);
    struct alloc *alloc = of_handle(handle);
    if (!memory || memory->fd >= 0 || memory->bytes != bytes || alloc->bytes != bytes || offset || flags)
        return STANDIN_INVALID_VALUE;
    if (mmap(memory->at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, alloc->fd, 0) == MAP_FAILED)
        return CUDA_OUT_OF_MEMORY;
    if (!alloc->foreign)
        memset(memory->at, NOISE, bytes);
    memory->fd = alloc->fd;
    memory->alloc = alloc;
    alloc->users++;
    return 0;
}

cuda_result cuMemUnmap(cuda_ptr at, size_t bytes) {
    ENTER(cuMemUnmap);
    struct memory *memory = find(at);
    if (!memory || !memory->alloc || memory->fd < 0 || memory->bytes != bytes)
        return STANDIN_INVALID_VALUE;
    standin_finish_all();
    if (mmap(memory->at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        abort();
    leave(memory->alloc);
    memory->fd = -1;
    memory->accessible = false;
    return 0;
}

cuda_result cuMemSetAccess(cuda_ptr at, size_t bytes, const struct cuda_access *access, size_t count) {
    ENTER(cuMemSetAccess);
    struct memory *memory = find(at);
    if (!memory || memory->fd < 0 || memory->bytes != bytes || count != 1 ||
        access->flags != CUDA_ACCESS_READWRITE || access->location.type != CUDA_LOCATION_DEVICE)
        return STANDIN_INVALID_VALUE;
    memory->accessible = true;
    return 0;
}
