/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels against a plain loop, and tensors whose scales do not all fit in memory. */
#define PIECE_BLOCKS 4
#define KEPT_BLOCKS 8
#include "pack/quantize.c" /* with those in the place of its own */

#include "folder.h"
#include "hash/cpu.h"
#include "pack/oam.h"

#include <float.h>
#include <math.h>

static struct ckpt_err err;

/* ---- a plain loop ---------------------------------------------------------------------------------------
 */

static float scale_of_block(const float *values, int top) {
    float most = 0;
    for (int i = 0; i < 32; i++)
        if (isfinite(values[i]) && fabsf(values[i]) > most)
            most = fabsf(values[i]);
    float scale = most / (float)top;
    return scale > 0 && isfinite(scale) ? scale : 1;
}

static int nearest(float value, float scale, int top) {
    if (!isfinite(value))
        return 0;
    float quotient = value / scale;
    long rounded = lrintf(quotient); /* halves to even, as the process rounds */
    return rounded > top ? top : rounded < -top ? -top : (int)rounded;
}

static void plain(const float *values, size_t blocks, bool q4, uint8_t *ints, uint8_t *scales) {
    const int top = q4 ? 7 : 127;
    for (size_t n = 0; n < blocks; n++, values += 32) {
        float scale = scale_of_block(values, top);
        memcpy(scales + 4 * n, &scale, 4);
        for (int i = 0; i < 32; i++) {
            int q = nearest(values[i], scale, top);
            uint8_t *at = &ints[q4 ? 16 * n + (size_t)i / 2 : 32 * n + (size_t)i];
            if (!q4)
                *at = (uint8_t)q;
            else
                *at = (uint8_t)(i % 2 ? *at | (q + 7) << 4 : q + 7);
        }
    }
}

/* ---- values ---------------------------------------------------------------------------------------------
 */

static uint32_t seed;

static uint32_t chance(void) {
    seed = seed * 1664525 + 1013904223;
    return seed ^ seed >> 15;
}

enum nature { ANY, SMALL, SUBNORMAL, HALVES, HUGE_ONES, ZEROS, ALONE, NATURES };

static float value_of(enum nature nature) {
    uint32_t bits = chance();
    switch (nature) {
    case SMALL:
        return (float)((double)bits / 4294967296.0 - 0.5);
    case SUBNORMAL:
        bits &= 0x800000ff;
        break;
    case HALVES:
        return (float)((int)(bits % 509) - 254) * 0.5f; /* with 127 among them, q8 is full of ties */
    case HUGE_ONES:
        bits |= 0x7f000000; /* infinities and NaNs among them */
        break;
    case ZEROS:
        bits &= 0x80000000;
        break;
    case ALONE: /* one value and nothing that is finite besides */
        bits = bits % 64 ? bits | 0x7f800000 : 0x3f800000;
        break;
    default:
        break;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void fill(float *values, size_t count, enum nature nature) {
    for (size_t i = 0; i < count; i++)
        values[i] = value_of(nature);
}

/* ---- kernels --------------------------------------------------------------------------------------------
 */

#define BLOCKS 999

/* The input stands at any address. */
static void check_kernel(const struct quantize_kernel *kernel, const float *values, bool q4) {
    static uint8_t input[BLOCKS * 128 + 1], want[BLOCKS * 32], got[BLOCKS * 32];
    static uint8_t want_scales[BLOCKS * 4], got_scales[BLOCKS * 4];
    memcpy(input + 1, values, BLOCKS * 128);
    plain(values, BLOCKS, q4, want, want_scales);
    (q4 ? kernel->q4 : kernel->q8)(input + 1, BLOCKS, got, got_scales);
    ck_assert_mem_eq(got_scales, want_scales, sizeof got_scales);
    ck_assert_mem_eq(got, want, BLOCKS * (q4 ? 16 : 32));
}

static void check_natures(const struct quantize_kernel *kernel) {
    static float values[BLOCKS * 32];
    seed = 7;
    for (int nature = 0; nature < NATURES; nature++)
        for (int round = 0; round < 3; round++) {
            fill(values, BLOCKS * 32, (enum nature)nature);
            check_kernel(kernel, values, true);
            check_kernel(kernel, values, false);
        }
}

START_TEST(portable) {
    check_natures(&quantize_portable);
}
END_TEST

START_TEST(avx2) {
#ifdef HAVE_X86_KERNELS
    if (cpu_present() & CPU_AVX2)
        check_natures(&quantize_avx2);
#endif
}
END_TEST

/* What the rule says, by hand. */
START_TEST(by_hand) {
    float values[32] = {7, -7, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 3.5f, INFINITY, -INFINITY, NAN, 6.49f};
    uint8_t ints[32], scales[4];
    const uint8_t q4[] = {14 | 0 << 4, 7 | 9 << 4, 9 | 7 << 4, 5 | 11 << 4, 7 | 7 << 4, 7 | 13 << 4, 0x77};
    const uint8_t one[] = {0, 0, 0x80, 0x3f}, tiny[4] = {3, 0, 0, 0};
    quantize_portable.q4((const uint8_t *)values, 1, ints, scales);
    ck_assert_mem_eq(scales, one, 4);
    ck_assert_mem_eq(ints, q4, sizeof q4);
    memset(values, 0, sizeof values); /* m / 7 is no number above 0: the scale is 1 */
    memcpy(values, tiny, 4);
    quantize_portable.q8((const uint8_t *)values, 1, ints, scales);
    ck_assert_mem_eq(scales, one, 4);
    ck_assert_uint_eq(ints[0], 0);
    values[0] = FLT_TRUE_MIN * 10; /* the scale is the smallest number; 10 / 1 is clamped */
    quantize_portable.q4((const uint8_t *)values, 1, ints, scales);
    ck_assert_uint_eq(scales[0], 1);
    ck_assert_uint_eq(ints[0], 14 | 7 << 4);
}
END_TEST

/* ---- a tensor in pieces ---------------------------------------------------------------------------------
 */

static void setup(void) {
    folder_make();
    err = (struct ckpt_err){0};
}

/* As many values as do not fill the last block. */
static void check_tensor(enum encoding encoding, uint64_t elements) {
    static float values[64 * 32];
    static uint8_t ints[64 * 32], scales[64 * 4];
    const uint64_t shape[] = {1, elements}, blocks = (elements + 31) / 32;
    const size_t ints_bytes = (size_t)blocks * (encoding == ENCODING_Q4 ? 16 : 32);
    struct model model = {.config.architecture = {"a", 1}, .progress.metric_name = {"m", 1}};
    seed = (uint32_t)elements;
    memset(values, 0, sizeof values);
    fill(values, (size_t)elements, SMALL);
    struct model_tensor *item = model_add(&model, &model.weights, "w", 1);
    item->tensor.shape = shape;
    item->tensor.rank = 2;
    item->tensor.elements = elements;
    item->data = (struct data){.len = 4 * elements, .memory = values};
    ck_assert_int_eq(quantize_model(&model, encoding, &err), 0);
    ck_assert_msg(oam_write(folder_file("x.oam"), &model, NULL, &err) == 0, "%s", err.msg);
    plain(values, (size_t)blocks, encoding == ENCODING_Q4, ints, scales);
    struct buf file = file_load(folder_file("x.oam"));
    const char *stored = file.bytes + 4096 + 108 + 8 + 216;
    ck_assert_mem_eq(stored, ints, ints_bytes);
    ck_assert_mem_eq(stored + ints_bytes, scales, (size_t)blocks * 4);
    buf_free(&file);
    model_free(&model);
}

START_TEST(pieces) {
    static const uint64_t counts[] = {1, 31, 32, 33, 128, 129, 255, 256, 257, 300, 383, 384, 385, 1000, 2048};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check_tensor(ENCODING_Q4, counts[i]);
        check_tensor(ENCODING_Q8, counts[i]);
    }
}
END_TEST

static Suite *suite(void) {
    Suite *all = suite_create("quantize");
    TCase *kernels = tcase_create("kernels"), *tensors = tcase_create("tensors");
    tcase_add_test(kernels, portable);
    tcase_add_test(kernels, avx2);
    tcase_add_test(kernels, by_hand);
    tcase_add_checked_fixture(tensors, setup, folder_clear);
    tcase_add_test(tensors, pieces);
    suite_add_tcase(all, kernels);
    suite_add_tcase(all, tensors);
    return all;
}

int main(void) {
    return unit_run(suite());
}
