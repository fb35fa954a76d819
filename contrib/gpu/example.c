/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor that ckptfs holds on a GPU (mount option gpu), in C. Needs libc and the CUDA driver alone:
 *
 *   cc -o example example.c -ldl
 *   ./example /mnt/model/gpu/tensors/w.json [/mnt/model/tensors/w.npy]
 *
 * shows the first float32 values and, given the .npy (of a tensor whose type is the same on the device),
 * compares all of it. Exit code 0: fine; 1: they differ; 2: it failed. What matters: the .json stays open as
 * long as the tensor is used, and the device is found by its UUID. The process's end undoes the rest.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define JSON_MAX 65536

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fputs("example: ", stderr);
    vfprintf(stderr, fmt, args);
    fputs("\n", stderr);
    exit(2);
}

/* ---- the file ---------------------------------------------------------------------------------------- */

/* The text after "key": in a flat object. In a string a quote is escaped, so that no string can hold it. */
static const char *field(const char *json, const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(json, quoted);
    if (!at)
        die("the file has no %s", key);
    at += strlen(quoted);
    return at + strspn(at, " \n\t");
}

static uint64_t number(const char *json, const char *key) {
    return strtoull(field(json, key), NULL, 10);
}

/* A string without escapes. */
static void text(const char *json, const char *key, char *out, size_t size) {
    const char *at = field(json, key);
    size_t len = *at == '"' ? strcspn(at + 1, "\"\\") : size;
    if (len >= size)
        die("%s is no short text", key);
    memcpy(out, at + 1, len);
    out[len] = '\0';
}

/* Hex digits, with dashes between bytes. */
static void hex(const char *digits, uint8_t *out, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        digits += *digits == '-';
        if (sscanf(digits, "%2hhx", &out[i]) != 1)
            die("%s are not %zu bytes in hex", digits, bytes);
        digits += 2;
    }
}

/* ---- the driver -------------------------------------------------------------------------------------- */

struct uuid {
    uint8_t bytes[16];
};
struct ipc_handle {
    uint8_t bytes[64];
};
struct access {
    int location_type, location_id, flags;
};

static void *library;

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    if (!found)
        die("the CUDA driver lacks %s", name);
    return found;
}

/* Calls a function of the driver's with parameters of these types. */
#define CALL(name, params, ...)                                                                              \
    do {                                                                                                     \
        int(*call_) params;                                                                                  \
        void *found_ = symbol(#name);                                                                        \
        memcpy(&call_, &found_, sizeof found_);                                                              \
        int result_ = call_(__VA_ARGS__);                                                                    \
        if (result_)                                                                                         \
            die("%s: error %d", #name, result_);                                                             \
    } while (0)

/* CUDA_VISIBLE_DEVICES may hide or reorder devices: the UUID stays. */
static int device_of(const struct uuid *wanted) {
    int count = 0, device = 0;
    struct uuid found;
    CALL(cuDeviceGetCount, (int *), &count);
    for (int i = 0; i < count; i++) {
        CALL(cuDeviceGet, (int *, int), &device, i);
        CALL(cuDeviceGetUuid_v2, (struct uuid *, int), &found, device);
        if (!memcmp(&found, wanted, sizeof found))
            return device;
    }
    die("the tensor's device is none of the %d that this process sees", count);
}

static int start_driver(const char *json) {
    char uuid_text[64];
    struct uuid uuid;
    void *context;
    text(json, "uuid", uuid_text, sizeof uuid_text);
    hex(uuid_text + (strncmp(uuid_text, "GPU-", 4) ? 0 : 4), uuid.bytes, sizeof uuid.bytes);
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        die("no CUDA driver: %s", dlerror());
    CALL(cuInit, (unsigned), 0);
    int device = device_of(&uuid);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, device); /* the one that others use, too */
    CALL(cuCtxSetCurrent, (void *), context);
    return device;
}

/* ---- getting at the memory --------------------------------------------------------------------------- */

static uint64_t open_handle(const char *json) {
    char digits[129];
    struct ipc_handle handle;
    uint64_t at = 0;
    text(json, "ipc_handle", digits, sizeof digits);
    hex(digits, handle.bytes, sizeof handle.bytes);
    CALL(cuIpcOpenMemHandle_v2, (uint64_t *, struct ipc_handle, unsigned), &at, handle, 1);
    return at;
}

static int receive(int sock) {
    char answer = 0;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = &answer, .iov_len = 1};
    struct msghdr packet = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes};
    int fd;
    ssize_t len = recvmsg(sock, &packet, MSG_CMSG_CLOEXEC);
    struct cmsghdr *head = CMSG_FIRSTHDR(&packet);
    if (len != 1 || answer != 'y' || !head || head->cmsg_type != SCM_RIGHTS)
        die("the socket does not know the token");
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
    return fd;
}

static int descriptor(const char *json) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char token[128];
    text(json, "socket", address.sun_path, sizeof address.sun_path);
    text(json, "token", token, sizeof token);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (sock < 0 || connect(sock, (struct sockaddr *)&address, sizeof address))
        die("cannot connect to %s", address.sun_path);
    if (send(sock, token, strlen(token), MSG_NOSIGNAL) < 0)
        die("%s does not listen", address.sun_path);
    int fd = receive(sock);
    close(sock);
    return fd;
}

static uint64_t map_descriptor(const char *json, int device) {
    size_t size = number(json, "block");
    struct access access = {1, device, 3}; /* on the device; to read and write */
    uint64_t at = 0, alloc = 0;
    int fd = descriptor(json);
    CALL(cuMemImportFromShareableHandle, (uint64_t *, void *, int), &alloc, (void *)(intptr_t)fd, 1);
    close(fd);
    CALL(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, unsigned long long), &at, size, 0, 0, 0);
    CALL(cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long), at, size, 0, alloc, 0);
    CALL(cuMemSetAccess, (uint64_t, size_t, const struct access *, size_t), at, size, &access, 1);
    CALL(cuMemRelease, (uint64_t), alloc); /* what is mapped stays */
    return at;
}

static bool is_descriptor(const char *json) {
    char share[8];
    text(json, "share", share, sizeof share);
    return !strcmp(share, "fd");
}

/* Copies the tensor to the host. A handle must be closed before the file: its memory may be freed then. */
static void copy(const char *json, int device, void *values, size_t bytes) {
    bool fd = is_descriptor(json);
    uint64_t base = fd ? map_descriptor(json, device) : open_handle(json);
    CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), values, base + number(json, "offset"), bytes);
    if (!fd)
        CALL(cuIpcCloseMemHandle, (uint64_t), base);
}

/* ---- the values -------------------------------------------------------------------------------------- */

static int compare(const void *values, size_t bytes, const char *path) {
    uint8_t head[12];
    void *copy = malloc(bytes + 1);
    FILE *npy = fopen(path, "rb");
    if (!copy || !npy || fread(head, 1, 12, npy) != 12 || memcmp(head, "\x93NUMPY", 6))
        die("%s is no .npy file", path);
    int last = head[6] == 1 ? 9 : 11; /* where the header's size ends: of 2 bytes or of 4 */
    long size = 0;
    for (int i = last; i >= 8; i--)
        size = size << 8 | head[i];
    fseek(npy, last + 1 + size, SEEK_SET);
    int same = fread(copy, 1, bytes + 1, npy) == bytes && !memcmp(copy, values, bytes);
    printf("%s %s\n", same ? "equal to" : "differs from", path);
    fclose(npy);
    free(copy);
    return same ? 0 : 1;
}

static void show(const void *values, size_t bytes, const char *dtype) {
    float value;
    for (size_t i = 0; !strcmp(dtype, "F32") && i < 4 && i < bytes / sizeof value; i++) {
        memcpy(&value, (const char *)values + i * sizeof value, sizeof value);
        printf("%s%.9g", i ? " " : "", value);
    }
    puts("");
}

int main(int argc, char **argv) {
    static char json[JSON_MAX];
    char dtype[32];
    if (argc != 2 && argc != 3)
        die("usage: example FILE.json [FILE.npy]");
    FILE *file = fopen(argv[1], "rb"); /* this loads the tensor, and it stays until it is closed */
    if (!file || !fread(json, 1, sizeof json - 1, file))
        die("%s: %m", argv[1]);
    size_t bytes = number(json, "bytes");
    void *values = malloc(bytes + 1);
    int device = start_driver(json);
    text(json, "dtype", dtype, sizeof dtype);
    if (!values)
        die("no memory for %zu bytes", bytes);
    if (bytes)
        copy(json, device, values, bytes);
    printf("%s, %zu bytes on device %d\n", dtype, bytes, device);
    show(values, bytes, dtype);
    int rc = argc == 3 ? compare(values, bytes, argv[2]) : 0;
    free(values);
    fclose(file);
    return rc;
}
