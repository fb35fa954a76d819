/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' arithmetic, compiled for the host: against src/dequant bit for bit, and rounding from first
 * principles. */
#include "dequant/dequant.h"
#include "gpu/convert.h"
#include "unit.h"

#include <math.h>
#include <string.h>

/* Every pattern of one dense type of `width` bytes against widen(). */
static void same_as_widen(enum convert_kind kind, enum dtype dtype, unsigned width) {
    uint32_t count = 1u << (8 * width);
    uint8_t *in = malloc((size_t)count * width), *out = malloc((size_t)count * 4);
    ck_assert(in && out);
    for (uint32_t i = 0; i < count; i++)
        memcpy(in + (size_t)i * width, &i, width);
    widen(dtype, in, count, out);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t want, got = convert_value(kind, in, NULL, i);
        memcpy(&want, out + 4 * (size_t)i, 4);
        ck_assert_msg(got == want, "%s %#x: %#x, not %#x", dtype_table[dtype].name, i, got, want);
    }
    free(in);
    free(out);
}

START_TEST(dense_types_widen_as_on_the_cpu) {
    same_as_widen(CONVERT_BF16, DTYPE_BF16, 2);
    same_as_widen(CONVERT_F8_E5M2, DTYPE_F8_E5M2, 1);
    same_as_widen(CONVERT_F8_E4M3, DTYPE_F8_E4M3, 1);
    same_as_widen(CONVERT_F8_E8M0, DTYPE_F8_E8M0, 1);
    same_as_widen(CONVERT_F8_E5M2FNUZ, DTYPE_F8_E5M2FNUZ, 1);
    same_as_widen(CONVERT_F8_E4M3FNUZ, DTYPE_F8_E4M3FNUZ, 1);
}
END_TEST

/* What a float16 is worth, by its definition. */
static double f16_value(uint32_t h) {
    double sign = h >> 15 ? -1 : 1, mantissa = h & 0x3ff;
    int exponent = (int)(h >> 10 & 31);
    if (exponent == 31)
        return (h & 0x3ff) != 0 ? NAN : sign * INFINITY;
    return sign * ldexp(exponent ? mantissa + 1024 : mantissa, (exponent ? exponent : 1) - 25);
}

START_TEST(float16_widens_exactly) {
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t half = (uint16_t)h;
        uint32_t bits = convert_value(CONVERT_F16, &half, NULL, 0);
        double want = f16_value(h);
        ck_assert_msg(isnan(want) ? bits == ((h & 0x8000) << 16 | 0x7f800000 | (h & 0x3ff) << 13)
                                  : convert_bits((float)want) == bits,
            "%#x: %#x", h, bits);
    }
}
END_TEST

/* ---- blocks ------------------------------------------------------------------------------------------ */

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 3 ^ *state << 13;
}

static bool is_nan(uint32_t bits) {
    return (bits & 0x7fffffff) > 0x7f800000;
}

/* Blocks of random integers with scales of any bit pattern. What the NaN of 0 x infinity is, is the CPU's
 * choice: the kernels have that of x86. */
static void same_as_blocks(enum convert_kind kind, enum encoding encoding) {
    enum { BLOCKS = 4096 };
    static uint32_t ints[BLOCKS * 8], scales[BLOCKS];
    static uint8_t out[BLOCKS * DEQUANT_BLOCK * 4];
    uint32_t state = 7;
    for (size_t i = 0; i < sizeof ints / 4; i++)
        ints[i] = next_random(&state);
    for (size_t i = 0; i < BLOCKS; i++)
        scales[i] = next_random(&state);
    static const uint32_t odd[] = {0, 0x80000000, 1, 0x7fffff, 0x800000, 0x7f7fffff, 0x7f800000, 0xff800000,
        0x7f800001, 0xffc12345, 0x7fffffff, 0x00400001, 0x3f800000};
    memcpy(scales, odd, sizeof odd);
    (encoding == ENCODING_Q4 ? dequant_q4 : dequant_q8)(
        (const uint8_t *)ints, (const uint8_t *)scales, 0, BLOCKS * DEQUANT_BLOCK, out);
    for (uint64_t i = 0; i < BLOCKS * DEQUANT_BLOCK; i++) {
        uint32_t want, got = convert_value(kind, ints, scales, i);
        memcpy(&want, out + 4 * i, 4);
#ifdef __x86_64__
        bool same = got == want;
#else
        bool same = got == want || (is_nan(got) && is_nan(want));
#endif
        ck_assert_msg(
            same, "element %d of scale %#x: %#x, not %#x", (int)(i % 32), scales[i / 32], got, want);
    }
}

START_TEST(blocks_dequantize_as_on_the_cpu) {
    same_as_blocks(CONVERT_Q4, ENCODING_Q4);
    same_as_blocks(CONVERT_Q8, ENCODING_Q8);
}
END_TEST

/* ---- narrowing --------------------------------------------------------------------------------------- */

/* Where values of two neighbours `low` and `high` part: below the middle, on it (to the even one), above it.
 */
static void parts_at(uint32_t (*narrow)(uint32_t), double low_value, double high_value, uint32_t low) {
    float middle = (float)((low_value + high_value) / 2); /* exact: one bit more than either */
    uint32_t bits = convert_bits(middle), even = low & 1 ? low + 1 : low;
    ck_assert_uint_eq(narrow(bits), even);
    ck_assert_uint_eq(narrow(bits - 1), low);
    ck_assert_uint_eq(narrow(bits + 1), low + 1);
    ck_assert_uint_eq(narrow(bits | 0x80000000), even | 0x8000);
    ck_assert_uint_eq(narrow((bits - 1) | 0x80000000), low | 0x8000);
    ck_assert_uint_eq(narrow((bits + 1) | 0x80000000), (low + 1) | 0x8000);
}

static uint32_t to_f16(uint32_t bits) {
    return convert_to_f16(bits);
}
static uint32_t to_bf16(uint32_t bits) {
    return convert_to_bf16(bits);
}

/* Every finite float16 and the border to the next one: with that, every float32 (narrowing is monotone). */
START_TEST(float16_rounds_to_nearest_even) {
    for (uint32_t h = 0; h < 0x7c00; h++) {
        double value = f16_value(h), next = h + 1 < 0x7c00 ? f16_value(h + 1) : 65536;
        ck_assert_uint_eq(to_f16(convert_bits((float)value)), h);
        ck_assert_uint_eq(to_f16(convert_bits((float)value) | 0x80000000), h | 0x8000);
        parts_at(to_f16, value, next, h);
    }
    ck_assert_uint_eq(to_f16(0x7f800000), 0x7c00);
    ck_assert_uint_eq(to_f16(0xff7fffff), 0xfc00);
    ck_assert_uint_eq(to_f16(1), 0);
    ck_assert_uint_eq(to_f16(0x80000001), 0x8000);
}
END_TEST

static double bf16_value(uint32_t h) {
    return (double)convert_float(h << 16);
}

START_TEST(bfloat16_rounds_to_nearest_even) {
    for (uint32_t h = 0; h < 0x7f80; h++) {
        double next = h + 1 < 0x7f80 ? bf16_value(h + 1) : ldexp(1, 128);
        ck_assert_uint_eq(to_bf16(h << 16), h);
        ck_assert_uint_eq(to_bf16(h << 16 | 0x80000000), h | 0x8000);
        parts_at(to_bf16, bf16_value(h), next, h);
    }
    ck_assert_uint_eq(to_bf16(0x7f800000), 0x7f80);
    ck_assert_uint_eq(to_bf16(0xff7fffff), 0xff80);
}
END_TEST

START_TEST(nans_stay_nans) {
    uint32_t state = 3;
    for (int i = 0; i < 100000; i++) {
        uint32_t bits = next_random(&state) | 0x7f800000;
        if (i < 23)
            bits = 0x7f800000 | 1u << i;
        if (!is_nan(bits))
            continue;
        uint32_t sign = bits >> 16 & 0x8000;
        ck_assert_uint_eq(to_f16(bits), sign | 0x7e00 | (bits >> 13 & 0x3ff));
        ck_assert_uint_eq(to_bf16(bits), sign | 0x7fc0 | (bits >> 16 & 0x7f));
    }
}
END_TEST

START_TEST(results_are_stored_where_they_belong) {
    uint32_t words[3] = {1, 2, 3};
    uint16_t halves[3] = {1, 2, 3};
    convert_store(CONVERT_TO_F32, words, 1, 0x3f800000);
    convert_store(CONVERT_TO_F16, halves, 1, 0x3f800000);
    convert_store(CONVERT_TO_BF16, halves, 2, 0x3f800000);
    ck_assert(words[0] == 1 && words[1] == 0x3f800000 && words[2] == 3);
    ck_assert(halves[0] == 1 && halves[1] == 0x3c00 && halves[2] == 0x3f80);
}
END_TEST

static Suite *suite(void) {
    Suite *s = suite_create("gpu_convert");
    TCase *t = tcase_create("arithmetic");
    tcase_add_test(t, dense_types_widen_as_on_the_cpu);
    tcase_add_test(t, float16_widens_exactly);
    tcase_add_test(t, blocks_dequantize_as_on_the_cpu);
    tcase_add_test(t, float16_rounds_to_nearest_even);
    tcase_add_test(t, bfloat16_rounds_to_nearest_even);
    tcase_add_test(t, nans_stay_nans);
    tcase_add_test(t, results_are_stored_where_they_belong);
    suite_add_tcase(s, t);
    return s;
}

int main(void) {
    return unit_run(suite());
}
