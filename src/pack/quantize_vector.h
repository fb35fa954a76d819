/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels in vectors of the compiler's own. The includer defines
 *   LANES   values in a vector
 *   TARGET  the function attribute that switches its instructions on, if any
 *   KERNEL  the name of the table of its functions
 * Vectors are handed over by pointer only: how they are passed by value depends on the target.
 */
#ifndef PACK_QUANTIZE_VECTOR_H
#define PACK_QUANTIZE_VECTOR_H

#include "pack/quantize_kernel.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <endian.h>
#include <math.h>
#include <string.h>

#define INLINE TARGET static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
#define VECTORS (QUANTIZE_BLOCK / LANES)

typedef float vec_f __attribute__((vector_size(4 * LANES)));
typedef int32_t vec_i __attribute__((vector_size(4 * LANES)));
typedef int32_t vec_loose __attribute__((vector_size(4 * LANES), aligned(1), may_alias));

#define ALL(value) ((vec_i){0} + (value))
#define ABS_MASK 0x7fffffff
#define INFINITE 0x7f800000 /* and up, without the sign: infinities and NaNs */

/* Bits of a block's values, those that are not finite as 0. */
INLINE void load(const uint8_t *in, vec_i values[VECTORS]) {
    UNROLL for (int i = 0; i < VECTORS; i++) {
        values[i] = ((const vec_loose *)(const void *)in)[i];
    }
    if (htole32(1) != 1)
        for (int i = 0; i < VECTORS; i++)
            for (int lane = 0; lane < LANES; lane++)
                values[i][lane] = (int32_t)le32toh((uint32_t)values[i][lane]);
    UNROLL for (int i = 0; i < VECTORS; i++) {
        values[i] &= (values[i] & ABS_MASK) < ALL(INFINITE);
    }
}

INLINE void larger(vec_i *a, const vec_i *b) {
    vec_i mask = *a > *b;
    *a = (*a & mask) | (*b & ~mask);
}

/* Floats without a sign are in the order of their bits. */
INLINE float largest(const vec_i values[VECTORS]) {
    vec_i most = values[0] & ABS_MASK;
    UNROLL for (int i = 1; i < VECTORS; i++) {
        vec_i other = values[i] & ABS_MASK;
        larger(&most, &other);
    }
    int32_t top = most[0];
    UNROLL for (int lane = 1; lane < LANES; lane++) {
        top = most[lane] > top ? most[lane] : top;
    }
    float value;
    memcpy(&value, &top, sizeof value);
    return value;
}

INLINE float scale_of(const vec_i values[VECTORS], float top) {
    float scale = largest(values) / top;
    return scale > 0 && isfinite(scale) ? scale : 1;
}

/* Adding 1.5 * 2^23 leaves no bits after the point, rounded as every sum is: halves to even. The quotients
 * are far smaller: 189 at the most, where the scale is the smallest number that there is. */
INLINE void divide(const vec_i *values, float scale, int top, int32_t q[LANES]) {
    const float shift = 12582912;
    vec_f quotient;
    memcpy(&quotient, values, sizeof quotient);
    quotient = quotient / ((vec_f){0} + scale);
    vec_i rounded = __builtin_convertvector((quotient + shift) - shift, vec_i);
    vec_i most = ALL(top), least = ALL(-top), over = rounded > most;
    rounded = (most & over) | (rounded & ~over);
    larger(&rounded, &least);
    memcpy(q, &rounded, sizeof rounded);
}

INLINE void store_scale(float scale, uint8_t *out) {
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    bits = htole32(bits);
    memcpy(out, &bits, sizeof bits);
}

/* ---- narrowing: 32 integers that fit into bytes ----------------------------------------------------------
 */

#ifdef __SSE2__

/* Sixteen of them as bytes. */
INLINE __m128i narrow(const int32_t *q) {
    const __m128i *at = (const __m128i *)(const void *)q;
    return _mm_packs_epi16(_mm_packs_epi32(_mm_loadu_si128(at), _mm_loadu_si128(at + 1)),
        _mm_packs_epi32(_mm_loadu_si128(at + 2), _mm_loadu_si128(at + 3)));
}

INLINE void store_q8(const int32_t q[QUANTIZE_BLOCK], uint8_t *out) {
    _mm_storeu_si128((__m128i *)(void *)out, narrow(q));
    _mm_storeu_si128((__m128i *)(void *)(out + 16), narrow(q + 16));
}

/* Two neighbours as 16 bits: the lower byte, and above it the other nibble, moved down beside it. */
INLINE __m128i join(__m128i nibbles) {
    return _mm_and_si128(_mm_or_si128(nibbles, _mm_srli_epi16(nibbles, 4)), _mm_set1_epi16(0xff));
}

INLINE void store_q4(const int32_t q[QUANTIZE_BLOCK], uint8_t *out) {
    __m128i seven = _mm_set1_epi8(7);
    __m128i first = join(_mm_add_epi8(narrow(q), seven)), second = join(_mm_add_epi8(narrow(q + 16), seven));
    _mm_storeu_si128((__m128i *)(void *)out, _mm_packus_epi16(first, second));
}

#else

INLINE void store_q8(const int32_t q[QUANTIZE_BLOCK], uint8_t *out) {
    for (int i = 0; i < QUANTIZE_BLOCK; i++)
        out[i] = (uint8_t)q[i];
}

INLINE void store_q4(const int32_t q[QUANTIZE_BLOCK], uint8_t *out) {
    for (int i = 0; i < QUANTIZE_BLOCK / 2; i++)
        out[i] = (uint8_t)((q[2 * i] + 7) | (q[2 * i + 1] + 7) << 4);
}

#endif

/* ---- the kernels -----------------------------------------------------------------------------------------
 */

TARGET static void run_q4(const uint8_t *in, size_t blocks, uint8_t *ints, uint8_t *scales) {
    for (size_t n = 0; n < blocks; n++) {
        vec_i values[VECTORS];
        int32_t q[QUANTIZE_BLOCK];
        load(in + n * QUANTIZE_BLOCK_BYTES, values);
        float scale = scale_of(values, 7);
        store_scale(scale, scales + n * QUANTIZE_SCALE_BYTES);
        UNROLL for (int i = 0; i < VECTORS; i++) {
            divide(&values[i], scale, 7, q + i * LANES);
        }
        store_q4(q, ints + n * (QUANTIZE_BLOCK / 2));
    }
}

TARGET static void run_q8(const uint8_t *in, size_t blocks, uint8_t *ints, uint8_t *scales) {
    for (size_t n = 0; n < blocks; n++) {
        vec_i values[VECTORS];
        int32_t q[QUANTIZE_BLOCK];
        load(in + n * QUANTIZE_BLOCK_BYTES, values);
        float scale = scale_of(values, 127);
        store_scale(scale, scales + n * QUANTIZE_SCALE_BYTES);
        UNROLL for (int i = 0; i < VECTORS; i++) {
            divide(&values[i], scale, 127, q + i * LANES);
        }
        store_q8(q, ints + n * QUANTIZE_BLOCK);
    }
}

const struct quantize_kernel KERNEL = {run_q4, run_q8};

#endif
