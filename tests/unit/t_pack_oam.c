/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_pack as a library call: the words of its errors, stopping, progress; and the readers it is made of. */
#include "folder.h"
#include "golden.h"
#include "pack/fields.h"
#include "pack/files.h"
#include "pack/float_text.h"
#include "pack/oam.h"

#include <errno.h>
#include <locale.h>

static struct ckpt_err err;
static const char old[] = "what stood there before";
static const char long_name[] = "a name of thirty-two bytes or so";

static void setup(void) {
    folder_make();
    err = (struct ckpt_err){0};
    file_store(folder_file("out.oam"), old, sizeof old);
}

static void assert_untouched(unsigned entries) {
    struct buf file = file_load(folder_file("out.oam"));
    ck_assert_uint_eq(file.len, sizeof old);
    ck_assert_mem_eq(file.bytes, old, sizeof old);
    ck_assert_uint_eq(folder_entries(), entries);
    buf_free(&file);
}

/* ---- refusals -------------------------------------------------------------------------------------------
 */

/* The words are the reference writer's alone; the message has them in it. */
static void check_refusal(struct slice item, size_t index, void *arg) {
    struct slice spec = golden_member(item, "spec");
    char words[256];
    (void)index;
    (void)arg;
    golden_text(golden_member(item, "error"), words, sizeof words);
    file_store(folder_file("spec.json"), spec.at, spec.len);
    ck_assert_int_eq(ckpt_pack(folder_file("spec.json"), folder_file("out.oam"), NULL, &err), CKPT_E_INVAL);
    ck_assert_str_eq(err.words, words);
    ck_assert_ptr_nonnull(strstr(err.msg, words));
    ck_assert_int_eq(ckpt_pack(folder_file("spec.json"), folder_file("out.oam"), NULL, NULL), CKPT_E_INVAL);
    assert_untouched(2);
}

START_TEST(refusals) {
    size_t len;
    uint8_t *text = golden_load("oam/write_refusals.json", &len);
    ck_assert_uint_ge(golden_items((struct slice){(char *)text, len}, check_refusal, NULL), 26);
    free(text);
}
END_TEST

/* Of two faults the one that the reference writer meets first. */
static struct model two_weights(void) {
    struct model model = {.config.architecture = {"a", 1}, .progress.metric_name = {"m", 1}};
    for (int i = 0; i < 2; i++)
        model_add(&model, &model.weights, "w", 1)->data = (struct data){.len = 4, .memory = "abcd"};
    return model;
}

static void assert_words(struct model *model, const char *words) {
    ck_assert_int_eq(oam_check(model, &err), CKPT_E_INVAL);
    ck_assert_str_eq(err.words, words);
    model_free(model);
}

START_TEST(order) {
    ck_assert_uint_eq(strlen(long_name), 32);
    struct model model = two_weights();
    assert_words(&model, "duplicate .oam tensor name");
    model = two_weights(); /* the second one is judged before its name is looked for */
    model.weights.items[1].data.len = 3;
    assert_words(&model, "invalid .oam tensor: byte count does not match shape and encoding");
    model = two_weights(); /* a repeat before a fault */
    model_add(&model, &model.weights, "", 0);
    assert_words(&model, "duplicate .oam tensor name");
    model = two_weights(); /* weights before state, and state before the optimizer */
    model_add(&model, &model.state, "", 0);
    assert_words(&model, "duplicate .oam tensor name");
    model = (struct model){.optimizer = {.present = true, .kind = {"x", 1}}};
    model_add(&model, &model.state, "", 0);
    assert_words(&model, "invalid .oam tensor: invalid name or rank");
    model = (struct model){.config.architecture = {long_name, 32}, .progress.metric_name = {long_name, 32}};
    assert_words(&model, ".oam architecture must fit in 31 non-NUL bytes");
    model = (struct model){.progress.metric_name = {long_name, 32}};
    model_add(&model, &model.weights, "", 0);
    assert_words(&model, ".oam metric name must fit in 31 non-NUL bytes");
    model = two_weights(); /* the name before the layout */
    model.weights.items[0].tensor.block = 32;
    model.weights.items[0].tensor.rank = 9;
    assert_words(&model, "invalid .oam tensor: invalid name or rank");
}
END_TEST

/* Names that are no UTF-8, and types that only safetensors has, cannot come from JSON. */
START_TEST(foreign) {
    struct model model = two_weights();
    model.weights.items[0].tensor.name = "\xff";
    ck_assert_int_eq(oam_check(&model, &err), CKPT_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "UTF-8"));
    model.weights.items[0].tensor.name = "v";
    model.weights.items[1].tensor.dtype = DTYPE_F8_E5M2;
    ck_assert_int_eq(oam_check(&model, &err), CKPT_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "F8_E5M2"));
    model.weights.items[1].tensor.dtype = DTYPE_F32;
    ck_assert_int_eq(oam_check(&model, &err), 0);
    model.weights.items[0].data.len = UINT64_MAX;
    ck_assert_int_eq(oam_check(&model, &err), CKPT_E_INVAL);
    model_free(&model);
}
END_TEST

/* Sums that no file can have, found before anything is written. */
START_TEST(too_large) {
    static const uint64_t most[] = {UINT64_C(1) << 63}, half[] = {UINT64_C(1) << 62};
    struct model model = two_weights();
    for (int i = 0; i < 2; i++) {
        struct model_tensor *item = &model.weights.items[i];
        item->tensor.name = i ? "a" : "b";
        item->tensor.dtype = DTYPE_U8;
        item->tensor.rank = 1;
        item->tensor.shape = half;
        item->data.len = *half;
    }
    ck_assert_int_eq(oam_write(folder_file("out.oam"), &model, NULL, &err), CKPT_E_LIMIT);
    for (int i = 0; i < 2; i++) { /* now past 2^64 */
        model.weights.items[i].tensor.shape = most;
        model.weights.items[i].data.len = *most;
    }
    ck_assert_int_eq(oam_write(folder_file("out.oam"), &model, NULL, &err), CKPT_E_LIMIT);
    model.weights.count = 0;
    model.config.arch_config.len = UINT64_C(1) << 32;
    ck_assert_int_eq(oam_write(folder_file("out.oam"), &model, NULL, &err), CKPT_E_LIMIT);
    assert_untouched(1);
    model_free(&model);
}
END_TEST

/* ---- stopping and progress ------------------------------------------------------------------------------
 */

struct counter {
    unsigned asked, stop_at;
    uint64_t done, total;
};

static bool asked(void *arg) {
    struct counter *counter = arg;
    return ++counter->asked >= counter->stop_at;
}

static void tell(void *arg, uint64_t done, uint64_t total) {
    struct counter *counter = arg;
    ck_assert_uint_ge(done, counter->done);
    counter->done = done;
    counter->total = total;
}

/* A state of 3 MiB from a file, so that there is something to stop. */
static void store_long(void) {
    static const char spec[] =
        "{\"format\":\"oam\",\"config\":{\"architecture\":\"a\",\"config_version\":1,\"flags\":0,\"d_model\":0,"
        "\"n_layers\":0,\"d_vocab\":0,\"weight_dtype\":\"F32\",\"state_dtype\":\"F32\",\"compute_dtype\":\"F32\"},"
        "\"state\":[{\"name\":\"s\",\"dtype\":\"U8\",\"shape\":[3145728],\"data\":\"s.bin\"}],"
        "\"progress\":{\"phase\":0,\"step\":0,\"bytes_seen\":0,\"env_steps\":0,\"learning_rate\":1e-3,"
        "\"best_metric\":0,\"lower_is_better\":false,\"metric_name\":\"\"}}";
    static char bytes[3145728];
    file_store(folder_file("spec.json"), spec, sizeof spec - 1);
    file_store(folder_file("s.bin"), bytes, sizeof bytes);
}

START_TEST(stopped) {
    struct counter counter = {.stop_at = 1};
    const struct ckpt_cancel cancel = {asked, &counter};
    const struct ckpt_write_options options = {.cancel = &cancel};
    store_long();
    for (; counter.stop_at < 4; counter.stop_at++) {
        counter.asked = 0;
        ck_assert_int_eq(
            ckpt_pack(folder_file("spec.json"), folder_file("out.oam"), &options, &err), CKPT_E_INTR);
        assert_untouched(3);
    }
}
END_TEST

START_TEST(progress) {
    struct counter counter = {0};
    const struct ckpt_progress telling = {tell, &counter};
    const struct ckpt_write_options options = {.progress = &telling};
    store_long();
    ck_assert_int_eq(ckpt_pack(folder_file("spec.json"), folder_file("out.oam"), &options, &err), 0);
    ck_assert_uint_eq(counter.done, counter.total);
    ck_assert_uint_gt(counter.total, 3145728);
}
END_TEST

/* A file that was cut after it was measured. */
START_TEST(changed) {
    struct model model = {.config.architecture = {"a", 1}};
    file_store(folder_file("s.bin"), "abcdefgh", 8);
    char path[512];
    strcpy(path, folder_file("s.bin"));
    struct model_tensor *item = model_add(&model, &model.state, "s", 1);
    item->tensor.dtype = DTYPE_U64;
    ck_assert_int_eq(files_data(path, &item->data, &err), 0);
    file_store(path, "abcdefg", 7);
    ck_assert_int_eq(oam_write(folder_file("out.oam"), &model, NULL, &err), CKPT_E_CHANGED);
    ck_assert_ptr_nonnull(strstr(err.msg, "7 bytes"));
    assert_untouched(2);
    unlink(path);
    ck_assert_int_eq(oam_write(folder_file("out.oam"), &model, NULL, &err), CKPT_E_IO);
    assert_untouched(1);
    model_free(&model);
}
END_TEST

START_TEST(misuse) {
    ck_assert_int_eq(
        ckpt_quantize(folder_file("x"), (enum ckpt_quantization)2, folder_file("out.oam"), NULL, &err),
        CKPT_E_INVAL);
    ck_assert_int_eq(ckpt_quantize(folder_file("x"), CKPT_Q8, folder_file("out.oam"), NULL, &err), CKPT_E_IO);
    ck_assert_int_eq(ckpt_pack(folder_file("x"), folder_file("out.oam"), NULL, &err), CKPT_E_IO);
    ck_assert_int_eq(err.os_errno, ENOENT);
    assert_untouched(1);
}
END_TEST

/* ---- floats ---------------------------------------------------------------------------------------------
 */

START_TEST(numbers) {
    static const struct {
        const char *text;
        uint32_t bits;
    } good[] = {{"0", 0}, {"-0.0", 0x80000000}, {"1", 0x3f800000}, {"0.1", 0x3dcccccd},
        {"3.4028234663852886e38", 0x7f7fffff}, {"1e-45", 1}, {"1e-60", 0}, {"16777217", 0x4b800000},
        {"0.0003000000142492354", 0x399d4952}};
    uint32_t bits;
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed, its comma must not matter */
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_int_eq(float_of_number(good[i].text, strlen(good[i].text), &bits), 0);
        ck_assert_uint_eq(bits, good[i].bits);
    }
    setlocale(LC_ALL, "C");
    ck_assert_int_eq(float_of_number("1e39", 4, &bits), CKPT_E_INVAL);
    ck_assert(!float_of_number("123", 2, &bits) && bits == 0x41400000); /* 12 */
    ck_assert(float_of_name("-inf", 4, &bits) && bits == 0xff800000);
    ck_assert(float_of_name("NaN", 3, &bits) && bits == FLOAT_NAN);
    ck_assert(!float_of_name("NaN", 2, &bits) && !float_of_name("nano", 4, &bits));
    ck_assert(float_is_nan(0xff800001) && !float_is_nan(0xff800000) && !float_is_nan(0));
}
END_TEST

/* ---- paths ----------------------------------------------------------------------------------------------
 */

START_TEST(paths) {
    static const char *const bad[] = {"", "/x", "..", "../x", "a/..", "a/../b", "a//../b"};
    static const char *const good[] = {"x", "a/b", "..x", "x..", "a/...", "./x"};
    struct arena arena = {0};
    char *path = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct model_text name = {bad[i], strlen(bad[i])};
        ck_assert_int_eq(files_path("d", &name, &arena, &path, &err), CKPT_E_INVAL);
        ck_assert_ptr_null(path);
    }
    const struct model_text nul = {"a\0b", 3};
    ck_assert_int_eq(files_path("d", &nul, &arena, &path, &err), CKPT_E_INVAL);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const struct model_text name = {good[i], strlen(good[i])};
        ck_assert_int_eq(files_path("d", &name, &arena, &path, &err), 0);
        ck_assert(!strncmp(path, "d/", 2) && !strcmp(path + 2, good[i]));
        ck_assert_int_eq(files_path("", &name, &arena, &path, &err), 0);
        ck_assert_str_eq(path, good[i]);
    }
    arena_free(&arena);
}
END_TEST

static Suite *suite(void) {
    Suite *all = suite_create("pack_oam");
    TCase *writing = tcase_create("writing"), *parts = tcase_create("parts");
    tcase_add_checked_fixture(writing, setup, folder_clear);
    tcase_add_test(writing, refusals);
    tcase_add_test(writing, order);
    tcase_add_test(writing, foreign);
    tcase_add_test(writing, too_large);
    tcase_add_test(writing, stopped);
    tcase_add_test(writing, progress);
    tcase_add_test(writing, changed);
    tcase_add_test(writing, misuse);
    tcase_add_test(parts, numbers);
    tcase_add_test(parts, paths);
    suite_add_tcase(all, writing);
    suite_add_tcase(all, parts);
    return all;
}

int main(void) {
    return unit_run(suite());
}
