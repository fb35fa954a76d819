/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/compare.h"

#include "pack/numbers.h"

#include <math.h>
#include <string.h>

bool compare_is_integer(enum dtype dtype) {
    switch (dtype) {
    case DTYPE_I8:
    case DTYPE_I16:
    case DTYPE_I32:
    case DTYPE_I64:
    case DTYPE_U8:
    case DTYPE_U16:
    case DTYPE_U32:
    case DTYPE_U64:
    case DTYPE_BOOL:
        return true;
    default:
        return false;
    }
}

/* ---- the sum ------------------------------------------------------------------------------------------- */

/* Neumaier: what the addition rounds away is kept. */
void compare_add(struct tally *tally, double value) {
    double sum = tally->sum + value;
    if (isfinite(sum))
        tally->carry += tally->sum >= value ? (tally->sum - sum) + value : (value - sum) + tally->sum;
    tally->sum = sum;
}

static void add_whole(struct tally *tally, uint64_t value) {
    tally->whole_lo += value;
    tally->whole_hi += tally->whole_lo < value;
}

double compare_mean(const struct tally *tally) {
    uint64_t count = tally->elements - tally->nans;
    long double whole = (long double)tally->whole_hi * 0x1p64L + (long double)tally->whole_lo;
    long double sum = (long double)tally->sum + (long double)tally->carry + whole;
    return count ? (double)(sum / (long double)count) : 0;
}

void compare_same(uint64_t count, struct tally *tally) {
    tally->elements += count;
}

/* ---- one type of floats -------------------------------------------------------------------------------- */

/* Inlined for every type, so that `at` is no call and the widths are constants. parts: 2 of a complex number.
 */
static inline __attribute__((always_inline)) void compare_floats(double (*at)(const uint8_t *bytes),
    size_t width, size_t parts, const uint8_t *a, const uint8_t *b, uint64_t count, struct tally *tally) {
    size_t size = width * parts;
    double sum = 0, carry = 0;
    for (uint64_t i = 0; i < count; i++, a += size, b += size) {
        if (!memcmp(a, b, size))
            continue;
        double apart = distance(at(a), at(b));
        if (parts == 2)
            apart = hypot(apart, distance(at(a + width), at(b + width)));
        tally->differing++;
        /* the modulus of an infinity and a NaN is an infinity: look at the parts */
        if (isnan(at(a)) || isnan(at(b)) || (parts == 2 && (isnan(at(a + width)) || isnan(at(b + width))))) {
            tally->nans++;
            continue;
        }
        tally->max = apart > tally->max ? apart : tally->max;
        double next = sum + apart, added = next - sum; /* Knuth: carry is what the additions rounded away */
        carry += (sum - (next - added)) + (apart - added);
        sum = next;
    }
    compare_add(tally, sum);
    if (isfinite(sum))
        compare_add(tally, carry);
}

static void compare_one_type(
    enum dtype type, const uint8_t *a, const uint8_t *b, uint64_t count, struct tally *tally) {
    switch (type) {
    case DTYPE_F16:
        compare_floats(f16_at, 2, 1, a, b, count, tally);
        break;
    case DTYPE_F32:
        compare_floats(f32_at, 4, 1, a, b, count, tally);
        break;
    case DTYPE_F64:
        compare_floats(f64_at, 8, 1, a, b, count, tally);
        break;
    case DTYPE_C64:
        compare_floats(f32_at, 4, 2, a, b, count, tally);
        break;
    case DTYPE_C128:
        compare_floats(f64_at, 8, 2, a, b, count, tally);
        break;
    default: /* no .npy has it */
        break;
    }
}

/* ---- one type of integers ------------------------------------------------------------------------------ */

static inline __attribute__((always_inline)) void compare_integers(
    bool is_signed, size_t width, const uint8_t *a, const uint8_t *b, uint64_t count, struct tally *tally) {
    for (uint64_t i = 0; i < count; i++, a += width, b += width) {
        uint64_t x = is_signed ? (uint64_t)signed_at(a, width) : load(a, width);
        uint64_t y = is_signed ? (uint64_t)signed_at(b, width) : load(b, width);
        if (x == y)
            continue;
        bool above = is_signed ? (int64_t)x > (int64_t)y : x > y;
        uint64_t apart = above ? x - y : y - x;
        tally->differing++;
        tally->max_integer = apart > tally->max_integer ? apart : tally->max_integer;
        add_whole(tally, apart);
    }
    tally->max = (double)tally->max_integer;
}

static void compare_wholes(
    enum dtype type, const uint8_t *a, const uint8_t *b, uint64_t count, struct tally *tally) {
    bool is_signed = type == DTYPE_I8 || type == DTYPE_I16 || type == DTYPE_I32 || type == DTYPE_I64;
    switch (dtype_table[type].bits) {
    case 8:
        compare_integers(is_signed, 1, a, b, count, tally);
        break;
    case 16:
        compare_integers(is_signed, 2, a, b, count, tally);
        break;
    case 32:
        compare_integers(is_signed, 4, a, b, count, tally);
        break;
    default:
        compare_integers(is_signed, 8, a, b, count, tally);
        break;
    }
}

/* ---- the one door -------------------------------------------------------------------------------------- */

void compare(enum dtype a_type, const uint8_t *a, enum dtype b_type, const uint8_t *b, uint64_t count,
    struct tally *tally) {
    tally->elements += count;
    if (a_type != b_type)
        compare_mixed(a_type, a, b_type, b, count, tally);
    else if (compare_is_integer(a_type))
        compare_wholes(a_type, a, b, count, tally);
    else
        compare_one_type(a_type, a, b, count, tally);
}
