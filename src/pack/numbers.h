/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers out of little-endian bytes, exactly, and what the kernels of comparing share. */
#ifndef PACK_NUMBERS_H
#define PACK_NUMBERS_H

#include "pack/compare.h"

#include <math.h>
#include <string.h>

static inline uint64_t load(const uint8_t *at, size_t width) {
    uint64_t bits = 0;
    memcpy(&bits, at, width); /* of a big-endian machine, the upper bytes */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bits = __builtin_bswap64(bits);
#endif
    return bits;
}

static inline double f64_at(const uint8_t *at) {
    uint64_t bits = load(at, 8);
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static inline double f32_at(const uint8_t *at) {
    uint32_t bits = (uint32_t)load(at, 4);
    float value;
    memcpy(&value, &bits, 4);
    return (double)value;
}

/* The bits as those of a float32 are 2^112 too small, subnormal ones too. */
static inline double f16_at(const uint8_t *at) {
    uint32_t half = (uint32_t)load(at, 2), bits = (half & 0x7fff) << 13;
    float value;
    if ((half & 0x7c00) == 0x7c00)
        bits |= 0x7f800000;
    memcpy(&value, &bits, 4);
    if ((half & 0x7c00) != 0x7c00)
        value *= 0x1p112f;
    return half & 0x8000 ? -(double)value : (double)value;
}

static inline int64_t signed_at(const uint8_t *at, size_t width) {
    unsigned unused = (unsigned)(64 - 8 * width);
    return (int64_t)(load(at, width) << unused) >> unused;
}

/* 0 between infinities of one sign. */
static inline double distance(double a, double b) {
    return a == b ? 0 : fabs(a - b);
}

/* compare for two types (compare_mixed.c), but for tally->elements. */
void compare_mixed(enum dtype a_type, const uint8_t *a, enum dtype b_type, const uint8_t *b, uint64_t count,
    struct tally *tally);
/* Adds a distance to the sum. */
void compare_add(struct tally *tally, double value);

#endif
