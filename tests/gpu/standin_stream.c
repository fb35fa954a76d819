/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and kernels: started things wait in one queue until somebody waits for them. */
#include "standin.h"

#include "gpu/convert.h"

#include <stdlib.h>
#include <string.h>

struct task {
    cuda_ptr to, from;
    size_t bytes; /* of a copy */
    int kernel;   /* -1: a copy; -2: zeros */
    cuda_ptr scales;
    uint64_t count;
    uint32_t target;
};

static struct task *tasks;
static uint64_t started, done, room; /* tasks[0 .. started - done) are to be done */

struct cuda_event_s {
    uint64_t after; /* as many tasks must be done */
};
struct cuda_function_s {
    int kind;
};

static void *host(cuda_ptr at) {
    return (void *)(uintptr_t)at;
}

/* ---- the queue --------------------------------------------------------------------------------------- */

static void start(struct task task) {
    if (started - done == room) {
        room = room ? 2 * room : 64;
        tasks = realloc(tasks, room * sizeof *tasks);
        if (!tasks)
            abort();
    }
    tasks[started++ - done] = task;
}

static void perform(const struct task *task) {
    if (task->kernel == -1)
        memcpy(host(task->to), host(task->from), task->bytes);
    if (task->kernel == -2)
        memset(host(task->to), 0, task->bytes);
    if (task->kernel < 0)
        return;
    for (uint64_t i = 0; i < task->count; i++)
        convert_store((enum convert_to)task->target, host(task->to), i,
            convert_value((enum convert_kind)task->kernel, host(task->from), host(task->scales), i));
}

static void finish(uint64_t until) {
    uint64_t now = until > done ? until - done : 0;
    for (uint64_t i = 0; i < now; i++)
        perform(&tasks[i]);
    if (now)
        memmove(tasks, tasks + now, (started - done - now) * sizeof *tasks);
    done += now;
}

void standin_finish_all(void) {
    finish(started);
}

/* ---- copies ------------------------------------------------------------------------------------------ */

cuda_result cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags) {
    ENTER(cuMemHostRegister);
    return at && bytes && !flags ? 0 : STANDIN_INVALID_VALUE;
}

cuda_result cuMemcpyHtoDAsync_v2(cuda_ptr to, const void *from, size_t bytes, cuda_stream stream) {
    ENTER(cuMemcpyHtoDAsync);
    if (!stream || !standin_inside(to, bytes))
        return STANDIN_INVALID_VALUE;
    start((struct task){.kernel = -1, .to = to, .from = (cuda_ptr)(uintptr_t)from, .bytes = bytes});
    return 0;
}

cuda_result cuMemcpyDtoHAsync_v2(void *to, cuda_ptr from, size_t bytes, cuda_stream stream) {
    ENTER(cuMemcpyDtoHAsync);
    if (!stream || !standin_inside(from, bytes))
        return STANDIN_INVALID_VALUE;
    start((struct task){.kernel = -1, .to = (cuda_ptr)(uintptr_t)to, .from = from, .bytes = bytes});
    return 0;
}

cuda_result cuMemcpyDtoDAsync_v2(cuda_ptr to, cuda_ptr from, size_t bytes, cuda_stream stream) {
    ENTER(cuMemcpyDtoDAsync);
    if (!stream || !standin_inside(from, bytes) || !standin_inside(to, bytes))
        return STANDIN_INVALID_VALUE;
    start((struct task){.kernel = -1, .to = to, .from = from, .bytes = bytes});
    return 0;
}

cuda_result cuMemsetD8Async(cuda_ptr at, unsigned char value, size_t bytes, cuda_stream stream) {
    ENTER(cuMemsetD8Async);
    if (!stream || value || !standin_inside(at, bytes))
        return STANDIN_INVALID_VALUE;
    start((struct task){.kernel = -2, .to = at, .bytes = bytes});
    return 0;
}

cuda_result cuMemcpyDtoH_v2(void *to, cuda_ptr from, size_t bytes) {
    ENTER(cuMemcpyDtoH);
    if (!standin_inside(from, bytes))
        return STANDIN_INVALID_VALUE;
    standin_finish_all();
    memcpy(to, host(from), bytes);
    return 0;
}

/* ---- streams and events ------------------------------------------------------------------------------ */

cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags) {
    static char one;
    ENTER(cuStreamCreate);
    *stream = (cuda_stream)(void *)&one;
    return standin_has_context() && flags == CUDA_STREAM_NON_BLOCKING ? 0 : STANDIN_INVALID_VALUE;
}

cuda_result cuStreamSynchronize(cuda_stream stream) {
    ENTER(cuStreamSynchronize);
    standin_finish_all();
    return stream ? 0 : STANDIN_INVALID_VALUE;
}

cuda_result cuEventCreate(cuda_event *event, unsigned flags) {
    ENTER(cuEventCreate);
    *event = calloc(1, sizeof **event);
    return *event && flags & CUDA_EVENT_DISABLE_TIMING ? 0 : STANDIN_INVALID_VALUE;
}

cuda_result cuEventRecord(cuda_event event, cuda_stream stream) {
    ENTER(cuEventRecord);
    event->after = started;
    return stream ? 0 : STANDIN_INVALID_VALUE;
}

cuda_result cuEventSynchronize(cuda_event event) {
    ENTER(cuEventSynchronize);
    finish(event->after);
    return 0;
}

/* ---- kernels ----------------------------------------------------------------------------------------- */

/* What a fat binary and PTX begin with. */
static bool is_image(const void *image) {
    static const uint8_t fatbin[] = {0x50, 0xed, 0x55, 0xba};
    return !memcmp(image, fatbin, sizeof fatbin) || !strncmp(image, "//", 2);
}

cuda_result cuModuleLoadData(cuda_module *module, const void *image) {
    static char one;
    ENTER(cuModuleLoadData);
    *module = (cuda_module)(void *)&one;
    return is_image(image) ? 0 : CUDA_INVALID_IMAGE;
}

cuda_result cuModuleGetFunction(cuda_function *function, cuda_module module, const char *name) {
    static struct cuda_function_s functions[CONVERT_COUNT];
    static const char *const names[] = {
#define NAME(kind, name) #name,
        CONVERT_KINDS(NAME)};
    ENTER(cuModuleGetFunction);
    for (int i = 0; module && i < CONVERT_COUNT; i++)
        if (!strcmp(names[i], name)) {
            functions[i].kind = i;
            *function = &functions[i];
            return 0;
        }
    return STANDIN_NOT_FOUND;
}

static uint64_t input_bytes(int kind, uint64_t count) {
    static const unsigned bits[CONVERT_COUNT] = {[CONVERT_F32] = 32,
        [CONVERT_F16] = 16,
        [CONVERT_BF16] = 16,
        [CONVERT_F8_E5M2] = 8,
        [CONVERT_F8_E4M3] = 8,
        [CONVERT_F8_E8M0] = 8,
        [CONVERT_F8_E5M2FNUZ] = 8,
        [CONVERT_F8_E4M3FNUZ] = 8,
        [CONVERT_Q4] = 4,
        [CONVERT_Q8] = 8};
    return (count * bits[kind] + 7) / 8;
}

static bool touches_its_own(const struct task *task) {
    uint64_t blocks = (task->count + CONVERT_BLOCK - 1) / CONVERT_BLOCK;
    bool scaled = task->kernel == CONVERT_Q4 || task->kernel == CONVERT_Q8;
    return standin_inside(task->from, input_bytes(task->kernel, task->count)) &&
           standin_inside(task->to, task->count * (task->target == CONVERT_TO_F32 ? 4 : 2)) &&
           (!scaled || (standin_inside(task->scales, blocks * 4) && task->scales % 4 == 0));
}

cuda_result cuLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, cuda_stream stream, void **params,
    void **extra) {
    ENTER(cuLaunchKernel);
    struct task task = {.kernel = function->kind};
    if (!grid_x || grid_y != 1 || grid_z != 1 || !block_x || block_x > 1024 || block_y != 1 || block_z != 1 ||
        shared || !stream || extra)
        return STANDIN_INVALID_VALUE;
    memcpy(&task.from, params[0], 8);
    memcpy(&task.scales, params[1], 8);
    memcpy(&task.to, params[2], 8);
    memcpy(&task.count, params[3], 8);
    memcpy(&task.target, params[4], 4);
    if (!touches_its_own(&task))
        return CUDA_ILLEGAL_ADDRESS;
    start(task);
    return 0;
}
