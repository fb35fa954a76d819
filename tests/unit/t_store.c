/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "folder.h"

#include <math.h>
#include <string.h>

static struct ckpt_err err;
static struct ckpt_store *store;

/* ---- memory that the host does not see, counts its blocks, and can be made to fail
 * ------------------------- */

static unsigned blocks;  /* that are allocated */
static unsigned fail_in; /* calls until one fails; 0: none does */

static int step(struct ckpt_err *step_err) {
    return fail_in && --fail_in == 0 ? err_set(step_err, CKPT_E_GPU, "the device is gone") : 0;
}

struct block {
    uint64_t bytes;
    uint8_t values[];
};

static int far_alloc(void *arg, uint64_t bytes, void **ret_block, struct ckpt_err *far_err) {
    ck_assert_ptr_eq(arg, &blocks);
    ck_assert_uint_ne(bytes, 0);
    int rc = step(far_err);
    if (rc)
        return rc;
    struct block *block = calloc(1, sizeof *block + bytes);
    block->bytes = bytes;
    *ret_block = block;
    blocks++;
    return 0;
}

static void far_free(void *arg, void *block) {
    ck_assert_ptr_eq(arg, &blocks);
    ck_assert_ptr_nonnull(block);
    free(block);
    blocks--;
}

static uint8_t *inside(struct block *block, uint64_t offset, uint64_t len) {
    ck_assert_uint_ne(len, 0);
    ck_assert(offset <= block->bytes && len <= block->bytes - offset);
    return block->values + offset;
}

static int far_put(
    void *arg, void *block, uint64_t offset, const void *bytes, uint64_t len, struct ckpt_err *far_err) {
    ck_assert_ptr_eq(arg, &blocks);
    memcpy(inside(block, offset, len), bytes, len);
    return step(far_err);
}

static int far_get(
    void *arg, void *block, uint64_t offset, void *bytes, uint64_t len, struct ckpt_err *far_err) {
    ck_assert_ptr_eq(arg, &blocks);
    memcpy(bytes, inside(block, offset, len), len);
    return step(far_err);
}

static const struct ckpt_memory far_memory = {
    .arg = &blocks, .alloc = far_alloc, .free = far_free, .put = far_put, .get = far_get};

/* Every test runs in host memory and in this one. */
static bool far;

static void use_memory(int which) {
    far = which == 1;
    ck_assert_int_eq(ckpt_store_create(far ? &far_memory : NULL, &store, &err), 0);
}

static void setup(void) {
    folder_make();
    err = (struct ckpt_err){0};
    blocks = fail_in = 0;
    store = NULL;
}

static void teardown(void) {
    ckpt_store_free(store);
    ck_assert_uint_eq(blocks, 0);
    folder_clear();
}

/* ---- helpers ------------------------------------------------------------------------------------------- */

static uint64_t add(const char *name, const uint64_t *shape, size_t rank) {
    uint64_t number = 99;
    ck_assert_msg(ckpt_store_add(store, name, shape, rank, &number, &err) == 0, "%s", err.msg);
    return number;
}

static struct ckpt_parameter parameter(uint64_t number) {
    struct ckpt_parameter got;
    ck_assert_msg(ckpt_store_parameter(store, number, &got, &err) == 0, "%s", err.msg);
    return got;
}

/* Values first, first + 1, ... */
static void fill(uint64_t number, float first) {
    uint64_t count = parameter(number).elements;
    float *values = calloc(count + 1, sizeof *values);
    for (uint64_t i = 0; i < count; i++)
        values[i] = first + (float)i;
    ck_assert_msg(ckpt_store_put(store, number, 0, values, count, &err) == 0, "%s", err.msg);
    free(values);
}

static void assert_filled(uint64_t number, float first) {
    uint64_t count = parameter(number).elements;
    float *values = calloc(count + 1, sizeof *values);
    ck_assert_msg(ckpt_store_get(store, number, 0, values, count, &err) == 0, "%s", err.msg);
    for (uint64_t i = 0; i < count; i++)
        ck_assert_float_eq(values[i], first + (float)i);
    free(values);
}

static void assert_error(int code, const char *words) {
    ck_assert_int_eq(err.code, code);
    ck_assert_msg(strstr(err.msg, words) != NULL, "'%s' is not in: %s", words, err.msg);
}

static const uint64_t two_three[] = {2, 3}, three_two[] = {3, 2}, four[] = {4}, none[] = {5, 0};

/* A file with w [2, 3] from 10 on, n [4] from 50 on, s [] 7, and e of no elements. */
static void save_example(const char *name) {
    struct ckpt_store *mine = store;
    ck_assert_int_eq(ckpt_store_create(NULL, &store, &err), 0);
    fill(add("w", two_three, 2), 10);
    fill(add("n", four, 1), 50);
    fill(add("s", NULL, 0), 7);
    add("e", none, 2);
    const struct ckpt_pair pairs[] = {{"step", 4, "12", 2}, {"n\0l", 3, "\0", 1}};
    ck_assert_msg(ckpt_store_save(store, folder_file(name), pairs, 2, NULL, &err) == 0, "%s", err.msg);
    ckpt_store_free(store);
    store = mine;
}

/* ---- parameters ------------------------------------------------------------------------------------------
 */

START_TEST(parameters_are_found_by_name) {
    use_memory(_i);
    ck_assert_uint_eq(add("w", two_three, 2), 0);
    ck_assert_uint_eq(add("a", four, 1), 1);
    ck_assert_uint_eq(add("", NULL, 0), 2);
    ck_assert_uint_eq(add("e", none, 2), 3);
    ck_assert_uint_eq(ckpt_store_count(store), 4);
    uint64_t number;
    ck_assert_int_eq(ckpt_store_find(store, "a", &number, &err), 0);
    ck_assert_uint_eq(number, 1);
    ck_assert_int_eq(ckpt_store_find(store, "b", &number, &err), CKPT_E_NOENT);
    ck_assert_int_eq(ckpt_store_find(store, "a", NULL, &err), 0);
    struct ckpt_parameter w = parameter(0), e = parameter(3);
    ck_assert_str_eq(w.name, "w");
    ck_assert_uint_eq(w.rank, 2);
    ck_assert_uint_eq(w.shape[1], 3);
    ck_assert_uint_eq(w.elements, 6);
    ck_assert_uint_eq(parameter(2).elements, 1);
    ck_assert_uint_eq(e.elements, 0);
    ck_assert_ptr_null(e.values);
    ck_assert_int_eq(w.values == NULL, far);
    ck_assert_int_eq(ckpt_store_parameter(store, 4, &w, &err), CKPT_E_NOENT);
    assert_error(CKPT_E_NOENT, "number 4 among 4");
}
END_TEST

START_TEST(many_parameters) {
    use_memory(_i);
    char name[32];
    uint64_t number;
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "p%u", i * 7919 % 1000);
        ck_assert_uint_eq(add(name, NULL, 0), i);
    }
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "p%u", i * 7919 % 1000);
        ck_assert_int_eq(ckpt_store_find(store, name, &number, &err), 0);
        ck_assert_uint_eq(number, i);
    }
}
END_TEST

START_TEST(what_cannot_be_added) {
    use_memory(_i);
    static uint64_t ones[1025];
    for (size_t i = 0; i < 1025; i++)
        ones[i] = 1;
    const uint64_t huge[] = {UINT64_C(1) << 32, UINT64_C(1) << 32}, large[] = {UINT64_C(1) << 61};
    add("w", four, 1);
    ck_assert_int_eq(ckpt_store_add(store, "w", four, 1, NULL, &err), CKPT_E_INVAL);
    assert_error(CKPT_E_INVAL, "'w' is there already, as number 0");
    ck_assert_int_eq(ckpt_store_add(store, "\xc0", four, 1, NULL, &err), CKPT_E_INVAL);
    ck_assert_int_eq(ckpt_store_add(store, "__metadata__", four, 1, NULL, &err), CKPT_E_INVAL);
    ck_assert_int_eq(ckpt_store_add(store, "r", ones, 1025, NULL, &err), CKPT_E_LIMIT);
    ck_assert_int_eq(ckpt_store_add(store, "h", huge, 2, NULL, &err), CKPT_E_LIMIT);
    ck_assert_int_eq(ckpt_store_add(store, "l", large, 1, NULL, &err), CKPT_E_LIMIT);
    assert_error(CKPT_E_LIMIT, "[2305843009213693952]");
    ck_assert_uint_eq(ckpt_store_count(store), 1);
    add("r", ones, 1024);
}
END_TEST

START_TEST(values_start_as_zeros_and_are_kept) {
    use_memory(_i);
    uint64_t w = add("w", two_three, 2);
    float values[6] = {1, 1, 1, 1, 1, 1};
    ck_assert_int_eq(ckpt_store_get(store, w, 0, values, 6, &err), 0);
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(values[i], 0);
    fill(w, 3);
    ck_assert_int_eq(ckpt_store_put(store, w, 2, (const float[]){-1, -2}, 2, &err), 0);
    ck_assert_int_eq(ckpt_store_get(store, w, 1, values, 4, &err), 0);
    ck_assert_float_eq(values[0], 4);
    ck_assert_float_eq(values[1], -1);
    ck_assert_float_eq(values[2], -2);
    ck_assert_float_eq(values[3], 7);
    if (!far)
        ck_assert_float_eq(parameter(w).values[3], -2);
}
END_TEST

START_TEST(values_past_the_end) {
    use_memory(_i);
    uint64_t w = add("w", two_three, 2), e = add("e", none, 2);
    float value = 5;
    ck_assert_int_eq(ckpt_store_get(store, w, 6, &value, 0, &err), 0);
    ck_assert_int_eq(ckpt_store_get(store, w, 6, &value, 1, &err), CKPT_E_INVAL);
    assert_error(CKPT_E_INVAL, "'w': 1 values from 6 on, it has 6");
    ck_assert_int_eq(ckpt_store_put(store, w, 7, &value, 0, &err), CKPT_E_INVAL);
    ck_assert_int_eq(ckpt_store_put(store, w, 1, &value, UINT64_MAX, &err), CKPT_E_INVAL);
    ck_assert_int_eq(ckpt_store_put(store, e, 0, &value, 0, &err), 0);
    ck_assert_int_eq(ckpt_store_put(store, e, 0, &value, 1, &err), CKPT_E_INVAL);
    ck_assert_int_eq(ckpt_store_get(store, 2, 0, &value, 0, &err), CKPT_E_NOENT);
    ck_assert_float_eq(value, 5);
}
END_TEST

/* ---- saving -------------------------------------------------------------------------------------------- */

START_TEST(saved_bytes_are_the_format_s) {
    use_memory(_i);
    fill(add("w", three_two, 2), 1);
    fill(add("a", NULL, 0), -2);
    const struct ckpt_pair pair = {"k", 1, "v", 1};
    ck_assert_msg(ckpt_store_save(store, folder_file("f"), &pair, 1, NULL, &err) == 0, "%s", err.msg);
    struct buf file = file_load(folder_file("f"));
    const char *header = "{\"__metadata__\":{\"k\":\"v\"},"
                         "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                         "\"w\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[4,28]}}";
    ck_assert_mem_eq(file.bytes + 8, header, strlen(header));
    const uint8_t data[] = {0, 0, 0, 0xc0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
    ck_assert_mem_eq(file.bytes + file.len - 28, data, sizeof data);
    buf_free(&file);
}
END_TEST

START_TEST(saving_may_fail) {
    use_memory(_i);
    fill(add("w", three_two, 2), 1);
    const struct ckpt_pair pairs[] = {{"k", 1, "v", 1}, {"k", 1, "v", 1}};
    ck_assert_int_eq(ckpt_store_save(store, folder_file("f"), pairs, 2, NULL, &err), CKPT_E_INVAL);
    ck_assert_int_eq(ckpt_store_save(store, folder, NULL, 0, NULL, &err), CKPT_E_IO);
    if (far) {
        fail_in = 1;
        ck_assert_int_eq(ckpt_store_save(store, folder_file("f"), NULL, 0, NULL, &err), CKPT_E_GPU);
    }
    ck_assert_uint_eq(folder_entries(), 0);
}
END_TEST

/* ---- loading ------------------------------------------------------------------------------------------- */

START_TEST(loading_is_by_name) {
    use_memory(_i);
    save_example("f");
    uint64_t mine = add("mine", four, 1), n = add("n", four, 1), w = add("w", two_three, 2),
             e = add("e", none, 2);
    fill(mine, 100);
    fill(n, 200);
    struct ckpt_pair *pairs = NULL;
    size_t count = 0;
    ck_assert_msg(ckpt_store_load(store, folder_file("f"), NULL, &pairs, &count, &err) == 0, "%s", err.msg);
    assert_filled(mine, 100); /* not in the file */
    assert_filled(n, 50);
    assert_filled(w, 10);
    assert_filled(e, 0);
    ck_assert_uint_eq(count, 2); /* and s, which the store does not name, is skipped */
    ck_assert_str_eq(pairs[0].key, "step");
    ck_assert_str_eq(pairs[0].value, "12");
    ck_assert_uint_eq(pairs[1].key_len, 3);
    ck_assert_mem_eq(pairs[1].key, "n\0l", 4);
    ck_assert_uint_eq(pairs[1].value_len, 1);
    free(pairs);
    ck_assert_int_eq(ckpt_store_load(store, folder_file("f"), NULL, NULL, NULL, &err), 0);
}
END_TEST

START_TEST(every_bit_survives) {
    use_memory(_i);
    const uint32_t bits[] = {0x7fc00001, 0xff800001, 0x80000000, 1, 0x7f800000, 0xffffffff};
    float values[6];
    memcpy(values, bits, sizeof bits);
    uint64_t w = add("w", two_three, 2);
    ck_assert_int_eq(ckpt_store_put(store, w, 0, values, 6, &err), 0);
    ck_assert_int_eq(ckpt_store_save(store, folder_file("f"), NULL, 0, NULL, &err), 0);
    fill(w, 0);
    ck_assert_msg(ckpt_store_load(store, folder_file("f"), NULL, NULL, NULL, &err) == 0, "%s", err.msg);
    ck_assert_int_eq(ckpt_store_get(store, w, 0, values, 6, &err), 0);
    ck_assert_mem_eq(values, bits, sizeof bits);
}
END_TEST

START_TEST(more_than_a_piece) {
    use_memory(_i);
    const uint64_t shape[] = {3, 200000};
    uint64_t w = add("w", shape, 2);
    fill(w, 1);
    ck_assert_int_eq(ckpt_store_save(store, folder_file("f"), NULL, 0, NULL, &err), 0);
    fill(w, 2);
    ck_assert_msg(ckpt_store_load(store, folder_file("f"), NULL, NULL, NULL, &err) == 0, "%s", err.msg);
    assert_filled(w, 1);
}
END_TEST

/* All or nothing: the store has n and w, and what it holds must stay. */
static void assert_not_loaded(
    const char *path, const uint64_t *shape, size_t rank, int code, const char *words) {
    uint64_t n = add("n", four, 1), w = add("w", shape, rank);
    fill(n, 1000);
    fill(w, 2000);
    struct ckpt_pair *pairs = NULL;
    size_t count = 77;
    ck_assert_int_eq(ckpt_store_load(store, path, NULL, &pairs, &count, &err), code);
    assert_error(code, words);
    ck_assert_ptr_null(pairs);
    ck_assert_uint_eq(count, 77);
    assert_filled(n, 1000);
    assert_filled(w, 2000);
}

START_TEST(another_shape) {
    use_memory(_i);
    save_example("f");
    assert_not_loaded(folder_file("f"), three_two, 2, CKPT_E_MISMATCH,
        "tensor 'w' has shape [2, 3], the parameter has [3, 2]");
}
END_TEST

START_TEST(another_rank) {
    use_memory(_i);
    save_example("f");
    const uint64_t six[] = {6};
    assert_not_loaded(
        folder_file("f"), six, 1, CKPT_E_MISMATCH, "tensor 'w' has shape [2, 3], the parameter has [6]");
}
END_TEST

START_TEST(another_type) {
    use_memory(_i);
    static const char header[] = "{\"n\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
                                 "\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[16,28]}}";
    uint8_t file[8 + sizeof header - 1 + 28] = {sizeof header - 1};
    memcpy(file + 8, header, sizeof header - 1);
    file_store(folder_file("f"), file, sizeof file);
    assert_not_loaded(folder_file("f"), two_three, 2, CKPT_E_MISMATCH,
        "tensor 'w' is stored as BF16 (dense), the parameter is F32 (dense)");
}
END_TEST

START_TEST(a_quantized_tensor) {
    use_memory(_i);
    char path[4096];
    const uint64_t shape[] = {8, 40};
    unit_golden(path, sizeof path, "oam/write/q4_q8_dense_mixed/expected.oam");
    add("embed.weight", shape, 2);
    ck_assert_int_eq(ckpt_store_load(store, path, NULL, NULL, NULL, &err), CKPT_E_MISMATCH);
    assert_error(
        CKPT_E_MISMATCH, "tensor 'embed.weight' is stored as F32 (q4), the parameter is F32 (dense)");
}
END_TEST

START_TEST(what_is_no_checkpoint) {
    use_memory(_i);
    file_store(folder_file("f"), "nothing of the kind", 19);
    assert_not_loaded(folder_file("f"), two_three, 2, CKPT_E_FORMAT, "f");
    ck_assert_int_eq(ckpt_store_load(store, folder_file("no"), NULL, NULL, NULL, &err), CKPT_E_IO);
}
END_TEST

/* An envelope around w.0 [2, 3], of which one bit of the data is wrong. */
START_TEST(a_damaged_envelope) {
    use_memory(_i);
    char path[4096];
    struct buf file = file_load(unit_golden(path, sizeof path, "envelope/accepted/holds_safetensors.ckpt"));
    uint64_t w = add("w.0", two_three, 2);
    ck_assert_msg(ckpt_store_load(store, path, NULL, NULL, NULL, &err) == 0, "%s", err.msg);
    fill(w, 5);
    file.bytes[file.len - 40] ^= 1;
    file_store(folder_file("f"), file.bytes, file.len);
    buf_free(&file);
    ck_assert_int_eq(ckpt_store_load(store, folder_file("f"), NULL, NULL, NULL, &err), CKPT_E_MISMATCH);
    assert_error(CKPT_E_MISMATCH, "chunk-mismatch");
    assert_filled(w, 5);
}
END_TEST

/* Wherever the memory fails, nothing is changed and nothing is lost. */
START_TEST(memory_fails_while_loading) {
    use_memory(1);
    save_example("f");
    uint64_t n = add("n", four, 1), w = add("w", two_three, 2);
    fill(n, 1);
    fill(w, 2);
    unsigned failures = 0;
    for (unsigned at = 1; at < 100; at++) {
        fail_in = at;
        if (!ckpt_store_load(store, folder_file("f"), NULL, NULL, NULL, &err))
            break;
        fail_in = 0;
        failures++;
        assert_error(CKPT_E_GPU, "the device is gone");
        ck_assert_uint_eq(blocks, 2);
        assert_filled(n, 1);
        assert_filled(w, 2);
    }
    fail_in = 0;
    ck_assert_uint_eq(failures, 4); /* two allocations, two puts */
    ck_assert_uint_eq(blocks, 2);
    assert_filled(n, 50);
    assert_filled(w, 10);
}
END_TEST

START_TEST(memory_fails_while_adding) {
    use_memory(1);
    fail_in = 1;
    ck_assert_int_eq(ckpt_store_add(store, "w", four, 1, NULL, &err), CKPT_E_GPU);
    ck_assert_uint_eq(ckpt_store_count(store), 0);
    add("w", four, 1);
}
END_TEST

static bool always(void *arg) {
    (void)arg;
    return true;
}

START_TEST(loading_is_cancelled) {
    use_memory(_i);
    save_example("f");
    uint64_t n = add("n", four, 1);
    fill(n, 1);
    const struct ckpt_cancel cancel = {always, NULL};
    const struct ckpt_write_options options = {.cancel = &cancel};
    ck_assert_int_eq(ckpt_store_load(store, folder_file("f"), &options, NULL, NULL, &err), CKPT_E_INTR);
    assert_filled(n, 1);
    ck_assert_int_eq(ckpt_store_save(store, folder_file("g"), NULL, 0, &options, &err), CKPT_E_INTR);
    ck_assert_uint_eq(folder_entries(), 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("store");
    TCase *tests = tcase_create("store");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, parameters_are_found_by_name, 0, 2);
    tcase_add_loop_test(tests, many_parameters, 0, 2);
    tcase_add_loop_test(tests, what_cannot_be_added, 0, 2);
    tcase_add_loop_test(tests, values_start_as_zeros_and_are_kept, 0, 2);
    tcase_add_loop_test(tests, values_past_the_end, 0, 2);
    tcase_add_loop_test(tests, saved_bytes_are_the_format_s, 0, 2);
    tcase_add_loop_test(tests, saving_may_fail, 0, 2);
    tcase_add_loop_test(tests, loading_is_by_name, 0, 2);
    tcase_add_loop_test(tests, every_bit_survives, 0, 2);
    tcase_add_loop_test(tests, more_than_a_piece, 0, 2);
    tcase_add_loop_test(tests, another_shape, 0, 2);
    tcase_add_loop_test(tests, another_rank, 0, 2);
    tcase_add_loop_test(tests, another_type, 0, 2);
    tcase_add_loop_test(tests, a_quantized_tensor, 0, 2);
    tcase_add_loop_test(tests, what_is_no_checkpoint, 0, 2);
    tcase_add_loop_test(tests, a_damaged_envelope, 0, 2);
    tcase_add_loop_test(tests, loading_is_cancelled, 0, 2);
    tcase_add_test(tests, memory_fails_while_loading);
    tcase_add_test(tests, memory_fails_while_adding);
    suite_add_tcase(suite, tests);
    return unit_run(suite);
}
