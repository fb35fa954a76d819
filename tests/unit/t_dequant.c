/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels against computations of another kind: ldexp on the fields of each number, doubles for products.
 */
#include "dequant/dequant.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static uint32_t word_at(const uint8_t *out, uint64_t index) {
    const uint8_t *at = out + 4 * index;
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static bool is_nan_word(uint32_t word) {
    return (word & 0x7fffffff) > 0x7f800000;
}

/* ---- 8-bit floats ----------------------------------------------------------------------------------------
 */

enum kind { IEEE, FN, FNUZ };

static double minifloat(unsigned byte, int mantissa_bits, int bias, enum kind kind) {
    int mantissa = (int)(byte & ((1u << mantissa_bits) - 1)), exponent = (int)(byte & 0x7f) >> mantissa_bits;
    int top = (1 << (7 - mantissa_bits)) - 1;
    double sign = byte & 0x80 ? -1 : 1;
    if (kind == FNUZ && byte == 0x80)
        return NAN;
    if (kind == IEEE && exponent == top)
        return mantissa ? NAN : sign * INFINITY;
    if (kind == FN && (byte & 0x7f) == 0x7f)
        return NAN;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

static double e8m0(unsigned byte) {
    return byte == 255 ? NAN : ldexp(1, (int)byte - 127);
}

static double expected(enum dtype dtype, unsigned byte) {
    switch (dtype) {
    case DTYPE_F8_E5M2:
        return minifloat(byte, 2, 15, IEEE);
    case DTYPE_F8_E4M3:
        return minifloat(byte, 3, 7, FN);
    case DTYPE_F8_E5M2FNUZ:
        return minifloat(byte, 2, 16, FNUZ);
    case DTYPE_F8_E4M3FNUZ:
        return minifloat(byte, 3, 8, FNUZ);
    default:
        return e8m0(byte);
    }
}

static const enum dtype eight[] = {
    DTYPE_F8_E5M2, DTYPE_F8_E4M3, DTYPE_F8_E8M0, DTYPE_F8_E5M2FNUZ, DTYPE_F8_E4M3FNUZ};

START_TEST(every_8_bit_float_is_exact) {
    enum dtype dtype = eight[_i];
    uint8_t in[256], out[4 * 256];
    for (unsigned i = 0; i < 256; i++)
        in[i] = (uint8_t)i;
    widen(dtype, in, 256, out);
    for (unsigned i = 0; i < 256; i++) {
        float want = (float)expected(dtype, i);
        ck_assert(isnan(want) || (double)want == expected(dtype, i)); /* float32 holds it */
        uint32_t got = word_at(out, i);
        ck_assert_msg(isnan(want) ? is_nan_word(got) : got == bits_of(want), "%s %02x: %08x",
            dtype_table[dtype].name, i, got);
    }
}
END_TEST

START_TEST(some_8_bit_floats_by_hand) {
    static const struct {
        enum dtype dtype;
        uint8_t byte;
        float value;
    } cases[] = {
        {DTYPE_F8_E4M3, 0x7e, 448},
        {DTYPE_F8_E4M3, 0x01, 0x1p-9f},
        {DTYPE_F8_E4M3, 0x80, -0.0f},
        {DTYPE_F8_E5M2, 0x7b, 57344},
        {DTYPE_F8_E5M2, 0x01, 0x1p-16f},
        {DTYPE_F8_E5M2, 0xfc, -INFINITY},
        {DTYPE_F8_E4M3FNUZ, 0x7f, 240},
        {DTYPE_F8_E5M2FNUZ, 0x7f, 57344},
        {DTYPE_F8_E8M0, 0, 0x1p-127f},
        {DTYPE_F8_E8M0, 254, 0x1p127f},
        {DTYPE_F8_E8M0, 127, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t out[4];
        widen(cases[i].dtype, &cases[i].byte, 1, out);
        ck_assert_msg(word_at(out, 0) == bits_of(cases[i].value), "case %zu: %08x", i, word_at(out, 0));
    }
}
END_TEST

START_TEST(every_bf16_keeps_its_bits) {
    enum { COUNT = 65536 };
    uint8_t *in = malloc(2 * COUNT + 1), *out = malloc(4 * COUNT + 1);
    for (unsigned i = 0; i < COUNT; i++) { /* at odd addresses: nothing is aligned */
        in[2 * i + 1] = (uint8_t)i;
        in[2 * i + 2] = (uint8_t)(i >> 8);
    }
    widen(DTYPE_BF16, in + 1, COUNT, out + 1);
    for (unsigned i = 0; i < COUNT; i++)
        ck_assert_uint_eq(word_at(out + 1, i), i << 16);
    free(in);
    free(out);
}
END_TEST

START_TEST(widening_stops_at_count) {
    enum { MOST = 80 };
    uint8_t in[2 * MOST], whole[4 * MOST], part[4 * MOST + 4];
    for (unsigned i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)(i * 37 + 11);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (!dtype_table[dtype].widens)
            continue;
        widen((enum dtype)dtype, in, MOST, whole);
        for (unsigned count = 0; count <= MOST; count++) {
            memset(part, 0xa5, sizeof part);
            widen((enum dtype)dtype, in, count, part);
            ck_assert(!memcmp(part, whole, 4 * count));
            for (unsigned i = 0; i < 4; i++)
                ck_assert_uint_eq(part[4 * count + i], 0xa5);
        }
    }
}
END_TEST

/* ---- blocks of integers ----------------------------------------------------------------------------------
 */

enum { BLOCKS = 9, ELEMENTS = BLOCKS * DEQUANT_BLOCK };

struct quantized {
    uint8_t ints[BLOCKS * DEQUANT_BLOCK];
    uint8_t scales[4 * BLOCKS];
};

/* Scales of every sort, little-endian; integers that run through all bytes. */
static void fill(struct quantized *data) {
    static const uint32_t scales[BLOCKS] = {0x3f800000, 0x7f800000, 0x7fc00001, 0x00000001, 0x7f7fffff,
        0x80000000, 0xbeaaaaab, 0x00400000, 0xff7fffff};
    for (unsigned i = 0; i < sizeof data->ints; i++)
        data->ints[i] = (uint8_t)(i * 151 + 7);
    for (unsigned i = 0; i < sizeof data->scales; i++)
        data->scales[i] = (uint8_t)(scales[i / 4] >> (8 * (i % 4)));
}

static int integer_of(const struct quantized *data, bool q4, unsigned element) {
    if (!q4)
        return data->ints[element] < 128 ? data->ints[element] : data->ints[element] - 256;
    int byte = data->ints[element / 2];
    return (element % 2 ? byte / 16 : byte % 16) - 7;
}

static void dequant(const struct quantized *data, bool q4, unsigned first, unsigned count, uint8_t *out) {
    unsigned block = first / DEQUANT_BLOCK, skip = first % DEQUANT_BLOCK;
    if (q4)
        dequant_q4(data->ints + block * 16, data->scales + 4 * block, skip, count, out);
    else
        dequant_q8(data->ints + block * 32, data->scales + 4 * block, skip, count, out);
}

START_TEST(products_are_those_of_doubles_rounded_once) {
    struct quantized data;
    uint8_t out[4 * ELEMENTS];
    fill(&data);
    for (int q4 = 0; q4 < 2; q4++) {
        dequant(&data, q4, 0, ELEMENTS, out);
        for (unsigned i = 0; i < ELEMENTS; i++) {
            uint32_t scale_bits = word_at(data.scales, i / DEQUANT_BLOCK), got = word_at(out, i);
            float scale;
            memcpy(&scale, &scale_bits, 4);
            float want = (float)((double)integer_of(&data, q4, i) * (double)scale);
            ck_assert_msg(isnan(want) ? is_nan_word(got) : got == bits_of(want),
                "q%d element %u: %08x, want %08x", q4 ? 4 : 8, i, got, bits_of(want));
        }
    }
}
END_TEST

START_TEST(nibbles_by_hand) {
    uint8_t ints[16] = {0xf0, 0x87}, out[4 * DEQUANT_BLOCK];
    const uint8_t half[4] = {0, 0, 0, 0x3f};
    dequant_q4(ints, half, 0, DEQUANT_BLOCK, out);
    ck_assert_uint_eq(word_at(out, 0), bits_of(-3.5f));
    ck_assert_uint_eq(word_at(out, 1), bits_of(4.0f)); /* nibble 15 is 8 */
    ck_assert_uint_eq(word_at(out, 2), bits_of(0.0f));
    ck_assert_uint_eq(word_at(out, 3), bits_of(0.5f));
    ck_assert_uint_eq(word_at(out, 31), bits_of(-3.5f));
}
END_TEST

START_TEST(large_products_overflow_to_infinity) {
    uint8_t ints[32] = {2, 0xfe, 1}, out[4 * DEQUANT_BLOCK];
    const uint8_t largest[4] = {0xff, 0xff, 0x7f, 0x7f};
    dequant_q8(ints, largest, 0, DEQUANT_BLOCK, out);
    ck_assert_uint_eq(word_at(out, 0), bits_of(INFINITY));
    ck_assert_uint_eq(word_at(out, 1), bits_of(-INFINITY));
    ck_assert_uint_eq(word_at(out, 2), 0x7f7fffff);
}
END_TEST

START_TEST(any_part_equals_that_part_of_the_whole) {
    struct quantized data;
    uint8_t whole[4 * ELEMENTS], part[4 * ELEMENTS + 5];
    fill(&data);
    for (int q4 = 0; q4 < 2; q4++) {
        dequant(&data, q4, 0, ELEMENTS, whole);
        for (unsigned first = 0; first < ELEMENTS; first += 5)
            for (unsigned count = 0; first + count <= ELEMENTS; count += 1 + count / 3) {
                memset(part, 0xa5, sizeof part);
                dequant(&data, q4, first, count, part + 1);
                ck_assert_uint_eq(part[0], 0xa5);
                ck_assert_uint_eq(part[1 + 4 * count], 0xa5);
                ck_assert_msg(!memcmp(part + 1, whole + 4 * first, 4 * count), "q%d [%u, +%u)", q4 ? 4 : 8,
                    first, count);
            }
    }
}
END_TEST

START_TEST(blocks_have_the_bytes_of_the_format) {
    ck_assert_uint_eq(dequant_block_bytes(ENCODING_Q4), 16);
    ck_assert_uint_eq(dequant_block_bytes(ENCODING_Q8), 32);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("dequant");
    TCase *tcase = tcase_create("dequant");
    tcase_add_loop_test(tcase, every_8_bit_float_is_exact, 0, (int)(sizeof eight / sizeof *eight));
    tcase_add_test(tcase, some_8_bit_floats_by_hand);
    tcase_add_test(tcase, every_bf16_keeps_its_bits);
    tcase_add_test(tcase, widening_stops_at_count);
    tcase_add_test(tcase, products_are_those_of_doubles_rounded_once);
    tcase_add_test(tcase, nibbles_by_hand);
    tcase_add_test(tcase, large_products_overflow_to_infinity);
    tcase_add_test(tcase, any_part_equals_that_part_of_the_whole);
    tcase_add_test(tcase, blocks_have_the_bytes_of_the_format);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
