/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameter stores on a device, through ckptfs-gpu and the stand-in for the driver; with CKPTFS_TEST_GPU=real
 * through this machine's, and then without the failures that only the stand-in can be made to have.
 */
#include "base/err.h"
#include "unit/folder.h"

#include <dirent.h>
#include <errno.h>
#include <sys/wait.h>

#define BIG                                                                                                  \
    ((uint64_t)5 * 1024 * 1024 + 17) /* values: 20 MiB and a bit, more than both halves of the window */

static struct ckpt_err err;
static struct ckpt_memory *memory;
static struct ckpt_store *store;
static unsigned files; /* that were open before */

/* ---- surroundings -------------------------------------------------------------------------------------- */

static bool is_real(void) {
    const char *which = getenv("CKPTFS_TEST_GPU");
    return which && !strcmp(which, "real");
}

static const char *built(const char *name) {
    static char paths[3][512];
    static unsigned turn;
    const char *given = getenv("builddir");
    char *path = paths[turn++ % 3], *dir = realpath(given ? given : ".", NULL); /* the helper goes to / */
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    free(dir);
    return path;
}

static unsigned open_files(void) {
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* Which call of the driver goes wrong, as tests/gpu/standin.h says. */
static void go_wrong(const char *what) {
    setenv("CKPTFS_STANDIN_FAIL", what, 1);
}

static void start(enum ckpt_gpu_share share) {
    const struct ckpt_gpu_options options = {
        .helper = built("ckptfs-gpu"), .share = share, .reply_seconds = is_real() ? 0 : 2};
    ck_assert_msg(ckpt_gpu_memory(&options, &memory, &err) == 0, "%s", err.msg);
    ck_assert_int_eq(ckpt_store_create(memory, &store, &err), 0);
}

static void stop(void) {
    ckpt_store_free(store);
    ckpt_gpu_memory_free(memory);
    store = NULL;
    memory = NULL;
}

static void setup(void) {
    folder_make();
    unsetenv("CKPTFS_STANDIN_FAIL");
    unsetenv("CKPTFS_STANDIN_MEMORY");
    if (!is_real())
        setenv("LD_LIBRARY_PATH", built("tests/gpu/standin/.libs"), 1);
    files = open_files();
}

/* Nothing is left: no descriptor, no helper. */
static void teardown(void) {
    stop();
    ck_assert_uint_eq(open_files(), files);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    folder_clear();
}

/* ---- parameters ---------------------------------------------------------------------------------------- */

static uint64_t add_to(struct ckpt_store *to, const char *name, uint64_t elements) {
    uint64_t number;
    ck_assert_msg(ckpt_store_add(to, name, &elements, 1, &number, &err) == 0, "%s", err.msg);
    return number;
}

/* Bit patterns of all kinds, NaNs with payloads among them. */
static float *noise(uint64_t count, uint32_t seed) {
    uint32_t *bits = malloc(count * sizeof *bits + 1);
    ck_assert_ptr_nonnull(bits);
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        bits[i] = seed ^ seed >> 15;
    }
    return (float *)bits;
}

static void put(uint64_t number, uint64_t count, uint32_t seed) {
    float *values = noise(count, seed);
    ck_assert_msg(ckpt_store_put(store, number, 0, values, count, &err) == 0, "%s", err.msg);
    free(values);
}

static void assert_holds(struct ckpt_store *in, uint64_t number, uint64_t count, const float *want) {
    float *got = noise(count, 99);
    ck_assert_msg(ckpt_store_get(in, number, 0, got, count, &err) == 0, "%s", err.msg);
    ck_assert(memcmp(got, want, count * sizeof *got) == 0);
    free(got);
}

static void assert_noise(struct ckpt_store *in, uint64_t number, uint64_t count, uint32_t seed) {
    float *want = noise(count, seed);
    assert_holds(in, number, count, want);
    free(want);
}

static void assert_fault(int rc, int os_errno, const char *words) {
    ck_assert_int_eq(rc, CKPT_E_GPU);
    ck_assert_msg(
        err.code == CKPT_E_GPU && err.os_errno == os_errno, "%d %d: %s", err.code, err.os_errno, err.msg);
    ck_assert_msg(strstr(err.msg, words) != NULL, "'%s' is not in: %s", words, err.msg);
}

static int save(const char *name) {
    return ckpt_store_save(store, folder_file(name), NULL, 0, NULL, &err);
}

static int load(const char *name) {
    return ckpt_store_load(store, folder_file(name), NULL, NULL, NULL, &err);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

START_TEST(parameters_begin_as_zeros) {
    start((enum ckpt_gpu_share)_i);
    float *zeros = calloc(BIG, sizeof *zeros);
    ck_assert_ptr_nonnull(zeros);
    uint64_t big = add_to(store, "big", BIG), one = add_to(store, "one", 1), none = add_to(store, "none", 0);
    assert_holds(store, big, BIG, zeros);
    assert_holds(store, one, 1, zeros);
    assert_holds(store, none, 0, zeros);
    free(zeros);
}
END_TEST

/* Pieces of every length, across the window's halves, beside each other in both directions. */
START_TEST(pieces_are_put_and_got) {
    start(CKPT_GPU_IPC);
    float *values = noise(BIG, 1), *got = noise(BIG, 2);
    static const uint64_t cuts[] = {0, 1, 3, 1000, 2 << 20, (2 << 20) + 1, 4 << 20, BIG - 1, BIG};
    uint64_t number = add_to(store, "big", BIG), other = add_to(store, "other", 3);
    put(other, 3, 3);
    for (size_t i = sizeof cuts / sizeof *cuts - 1; i-- > 0;)
        ck_assert_int_eq(
            ckpt_store_put(store, number, cuts[i], values + cuts[i], cuts[i + 1] - cuts[i], &err), 0);
    assert_holds(store, number, BIG, values);
    for (size_t i = 0; i + 1 < sizeof cuts / sizeof *cuts; i++)
        ck_assert_int_eq(
            ckpt_store_get(store, number, cuts[i], got + cuts[i], cuts[i + 1] - cuts[i], NULL), 0);
    ck_assert(memcmp(got, values, BIG * sizeof *got) == 0);
    assert_noise(store, other, 3, 3);
    free(values);
    free(got);
}
END_TEST

/* Device, file, host and device again: equal bits. */
START_TEST(saved_and_loaded_bits_are_equal) {
    struct ckpt_store *host;
    start((enum ckpt_gpu_share)_i);
    put(add_to(store, "big", BIG), BIG, 1);
    put(add_to(store, "small", 5), 5, 2);
    add_to(store, "none", 0);
    ck_assert_msg(save("a.safetensors") == 0, "%s", err.msg);
    ck_assert_int_eq(ckpt_store_create(NULL, &host, &err), 0);
    uint64_t big = add_to(host, "big", BIG), small = add_to(host, "small", 5);
    ck_assert_msg(
        ckpt_store_load(host, folder_file("a.safetensors"), NULL, NULL, NULL, &err) == 0, "%s", err.msg);
    assert_noise(host, big, BIG, 1);
    assert_noise(host, small, 5, 2);
    ckpt_store_free(host);
    put(0, BIG, 7);
    put(1, 5, 8);
    ck_assert_msg(load("a.safetensors") == 0, "%s", err.msg);
    assert_noise(store, 0, BIG, 1);
    assert_noise(store, 1, 5, 2);
}
END_TEST

START_TEST(another_shape_changes_nothing) {
    start(CKPT_GPU_IPC);
    put(add_to(store, "a", 4), 4, 1);
    put(add_to(store, "b", 4), 4, 2);
    ck_assert_int_eq(save("a.safetensors"), 0);
    stop();
    start(CKPT_GPU_IPC);
    put(add_to(store, "a", 4), 4, 3);
    put(add_to(store, "b", 5), 5, 4);
    ck_assert_int_eq(load("a.safetensors"), CKPT_E_MISMATCH);
    assert_noise(store, 0, 4, 3);
    assert_noise(store, 1, 5, 4);
}
END_TEST

/* Another process sees the same bytes. */
START_TEST(places_can_be_opened) {
    struct ckpt_parameter parameter;
    struct ckpt_gpu_place place;
    char command[1024], hex[129] = "";
    start((enum ckpt_gpu_share)_i);
    add_to(store, "first", 1);
    put(add_to(store, "w", 1000), 1000, 5);
    ck_assert_int_eq(ckpt_store_parameter(store, 1, &parameter, &err), 0);
    ck_assert_ptr_null(parameter.values);
    ck_assert_int_eq(ckpt_gpu_place(memory, parameter.block, &place, &err), 0);
    ck_assert_uint_eq(place.bytes, 4000);
    ck_assert_uint_eq(place.offset, 256);
    for (size_t i = 0; i < sizeof place.ipc_handle; i++)
        snprintf(hex + 2 * i, 3, "%02x", place.ipc_handle[i]);
    ck_assert_int_eq(place.share == CKPT_GPU_FD, place.fd >= 0);
    int fd = place.fd >= 0 ? dup(place.fd) : -1; /* not closed on exec */
    if (fd >= 0)
        snprintf(command, sizeof command, "%s %u fd %d %llu %llu 4000", built("tests/gpu/peek"), place.device,
            fd, (unsigned long long)place.allocation, (unsigned long long)place.offset);
    else
        snprintf(command, sizeof command, "%s %u ipc %s %llu 4000", built("tests/gpu/peek"), place.device,
            hex, (unsigned long long)place.offset);
    FILE *peek = popen(command, "re");
    ck_assert_ptr_nonnull(peek);
    float got[1000], *want = noise(1000, 5);
    ck_assert_uint_eq(fread(got, sizeof *got, 1000, peek), 1000);
    ck_assert_int_eq(pclose(peek), 0);
    ck_assert(memcmp(got, want, sizeof got) == 0);
    free(want);
    if (fd >= 0)
        close(fd);
}
END_TEST

START_TEST(places_of_others_are_refused) {
    struct ckpt_parameter parameter;
    struct ckpt_gpu_place place;
    const struct ckpt_memory other = {0};
    start(CKPT_GPU_IPC);
    add_to(store, "none", 0);
    ck_assert_int_eq(ckpt_store_parameter(store, 0, &parameter, &err), 0);
    ck_assert_ptr_null(parameter.block);
    ck_assert_int_eq(ckpt_gpu_place(memory, parameter.block, &place, &err), CKPT_E_INVAL);
    ck_assert_int_eq(ckpt_gpu_place(&other, &place, &place, &err), CKPT_E_INVAL);
}
END_TEST

/* ---- failures ------------------------------------------------------------------------------------------ */

START_TEST(no_helper_no_memory) {
    const struct ckpt_gpu_options none = {.helper = "/nonexistent/helper"};
    assert_fault(ckpt_gpu_memory(&none, &memory, &err), ENODEV, "/nonexistent/helper");
    const struct ckpt_gpu_options wrong = {.helper = built("ckptfs-gpu"), .device = "77"};
    assert_fault(ckpt_gpu_memory(&wrong, &memory, &err), ENODEV, "77");
    ck_assert_int_eq(ckpt_gpu_memory(&wrong, &memory, NULL), CKPT_E_GPU);
    ck_assert_ptr_null(memory);
}
END_TEST

/* Adding fails and can be tried again; what is there stays. */
START_TEST(a_full_device_changes_nothing) {
    uint64_t many = (3 << 20) + 1, number = 77;
    setenv("CKPTFS_STANDIN_MEMORY", "16777216", 1);
    start(CKPT_GPU_IPC);
    put(add_to(store, "a", 1 << 20), 1 << 20, 1);
    assert_fault(ckpt_store_add(store, "b", &many, 1, &number, &err), ENOMEM, "CUDA_ERROR_OUT_OF_MEMORY");
    ck_assert_uint_eq(number, 77);
    ck_assert_uint_eq(ckpt_store_count(store), 1);
    assert_noise(store, 0, 1 << 20, 1);
    add_to(store, "b", 1 << 20);
    ck_assert_int_eq(save("a.safetensors"), 0);
    add_to(store, "c", 1 << 20);
    assert_fault(load("a.safetensors"), ENOMEM, "CUDA_ERROR_OUT_OF_MEMORY"); /* room for them twice */
    assert_noise(store, 0, 1 << 20, 1);
}
END_TEST

/* A copy that fails is told, and no more. */
START_TEST(a_failed_copy_is_told) {
    static const char *const calls[] = {"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemsetD8Async"};
    char list[64];
    float *values = noise(BIG, 1);
    uint64_t one = 1;
    snprintf(list, sizeof list, "%s:2:1", calls[_i]);
    go_wrong(list);
    start(CKPT_GPU_FD);
    uint64_t number = add_to(store, "big", BIG);
    if (_i == 0)
        assert_fault(ckpt_store_put(store, number, 0, values, BIG, &err), EIO, calls[0]);
    if (_i == 1)
        assert_fault(ckpt_store_get(store, number, 0, values, BIG, &err), EIO, calls[1]);
    if (_i == 2)
        assert_fault(ckpt_store_add(store, "b", &one, 1, NULL, &err), EIO, calls[2]);
    put(number, BIG, 4);
    assert_noise(store, number, BIG, 4);
    free(values);
}
END_TEST

static const struct {
    const char *what;
    int os_errno;
} ends[] = {{"cuMemcpyHtoDAsync:5:die", EIO}, {"cuMemcpyHtoDAsync:5:hang", ETIMEDOUT},
    {"cuMemcpyHtoDAsync:5:700", EIO} /* the context is of no use any more */, {"cuMemsetD8Async:3:die", EIO}};

/* In the middle of a load: an error, and the parameters are lost, which every call says. */
START_TEST(the_helper_ends) {
    float value;
    uint64_t one = 1;
    struct ckpt_parameter parameter;
    struct ckpt_gpu_place place;
    go_wrong(ends[_i].what);
    start(CKPT_GPU_FD);
    put(add_to(store, "a", 1), 1, 1);
    put(add_to(store, "big", BIG), BIG, 2); /* copies 2, 3 and 4 */
    ck_assert_int_eq(save("a.safetensors"), 0);
    int rc = load("a.safetensors");
    assert_fault(rc, ends[_i].os_errno, "");
    if (ends[_i].os_errno == EIO && strstr(ends[_i].what, "700"))
        ck_assert_ptr_nonnull(strstr(err.msg, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    rc = ckpt_store_get(store, 0, 0, &value, 1, &err);
    if (rc == 0 || !strstr(err.msg, "lost"))
        rc = ckpt_store_get(store, 0, 0, &value, 1, &err); /* who notices that it is gone says so first */
    assert_fault(rc, EIO, "lost");
    assert_fault(ckpt_store_put(store, 0, 0, &value, 1, &err), EIO, "lost");
    assert_fault(ckpt_store_add(store, "b", &one, 1, NULL, &err), EIO, "lost");
    ck_assert_int_eq(ckpt_store_put(store, 0, 0, &value, 1, NULL), CKPT_E_GPU);
    ck_assert_int_eq(ckpt_store_parameter(store, 0, &parameter, &err), 0);
    assert_fault(ckpt_gpu_place(memory, parameter.block, &place, &err), EIO, "lost");
    assert_fault(save("b.safetensors"), EIO, "lost");
    ck_assert_uint_eq(folder_entries(), 1);
}
END_TEST

static TCase *on_any_driver(void) {
    TCase *tests = tcase_create("any driver");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, parameters_begin_as_zeros, CKPT_GPU_IPC, CKPT_GPU_FD + 1);
    tcase_add_test(tests, pieces_are_put_and_got);
    tcase_add_loop_test(tests, saved_and_loaded_bits_are_equal, CKPT_GPU_IPC, CKPT_GPU_FD + 1);
    tcase_add_test(tests, another_shape_changes_nothing);
    tcase_add_loop_test(tests, places_can_be_opened, CKPT_GPU_IPC, CKPT_GPU_FD + 1);
    tcase_add_test(tests, places_of_others_are_refused);
    tcase_add_test(tests, no_helper_no_memory);
    return tests;
}

static TCase *on_the_standin(void) {
    TCase *tests = tcase_create("stand-in");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, a_full_device_changes_nothing);
    tcase_add_loop_test(tests, a_failed_copy_is_told, 0, 3);
    tcase_add_loop_test(tests, the_helper_ends, 0, sizeof ends / sizeof *ends);
    return tests;
}

int main(void) {
    if (access(built("ckptfs-gpu"), X_OK)) {
        puts("no ckptfs-gpu: skipped");
        return 77;
    }
    Suite *suite = suite_create("gpu store");
    suite_add_tcase(suite, on_any_driver());
    if (!is_real())
        suite_add_tcase(suite, on_the_standin());
    return unit_run(suite);
}
