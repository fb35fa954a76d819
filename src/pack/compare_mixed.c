/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of two types: slower, and exact all the same. */
#include "pack/numbers.h"

/* Real and imaginary part; a long double holds 64-bit integers and doubles exactly where it has 64 bits of
 * significand. */
struct number {
    long double part[2];
};

static struct number number_at(enum dtype type, const uint8_t *at) {
    size_t width = dtype_table[type].bits / 8;
    struct number number = {{0, 0}};
    switch (type) {
    case DTYPE_F16:
        number.part[0] = (long double)f16_at(at);
        break;
    case DTYPE_F32:
        number.part[0] = (long double)f32_at(at);
        break;
    case DTYPE_F64:
        number.part[0] = (long double)f64_at(at);
        break;
    case DTYPE_C64:
        number = (struct number){{(long double)f32_at(at), (long double)f32_at(at + 4)}};
        break;
    case DTYPE_C128:
        number = (struct number){{(long double)f64_at(at), (long double)f64_at(at + 8)}};
        break;
    case DTYPE_I8:
    case DTYPE_I16:
    case DTYPE_I32:
    case DTYPE_I64:
        number.part[0] = (long double)signed_at(at, width);
        break;
    default:
        number.part[0] = (long double)load(at, width);
        break;
    }
    return number;
}

static bool same_part(long double a, long double b) {
    double x = (double)a, y = (double)b;
    return isnan(a) && isnan(b) ? memcmp(&x, &y, sizeof x) == 0 : a == b;
}

static void compare_pair(const struct number *a, const struct number *b, bool whole, struct tally *tally) {
    if (same_part(a->part[0], b->part[0]) && same_part(a->part[1], b->part[1]))
        return;
    tally->differing++;
    if (isnan(a->part[0]) || isnan(a->part[1]) || isnan(b->part[0]) || isnan(b->part[1])) {
        tally->nans++;
        return;
    }
    long double re = a->part[0] == b->part[0] ? 0 : fabsl(a->part[0] - b->part[0]);
    long double im = a->part[1] == b->part[1] ? 0 : fabsl(a->part[1] - b->part[1]);
    long double apart = im > 0 ? hypotl(re, im) : re;
    tally->max = (double)apart > tally->max ? (double)apart : tally->max;
    if (whole) {
        uint64_t exact = apart < 0x1p64L ? (uint64_t)apart : 0;
        tally->over = tally->over || apart >= 0x1p64L;
        tally->max_integer = exact > tally->max_integer ? exact : tally->max_integer;
    }
    compare_add(tally, (double)apart);
}

void compare_mixed(enum dtype a_type, const uint8_t *a, enum dtype b_type, const uint8_t *b, uint64_t count,
    struct tally *tally) {
    size_t a_width = dtype_table[a_type].bits / 8, b_width = dtype_table[b_type].bits / 8;
    bool whole = compare_is_integer(a_type) && compare_is_integer(b_type);
    for (uint64_t i = 0; i < count; i++, a += a_width, b += b_width) {
        struct number x = number_at(a_type, a), y = number_at(b_type, b);
        compare_pair(&x, &y, whole, tally);
    }
}
