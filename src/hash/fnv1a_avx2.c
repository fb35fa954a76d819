/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a with AVX2 (see fnv1a_vector.h): blocks of 2 KiB, 256 bit lanes. */
#include "config.h"

#ifdef HAVE_X86_KERNELS

#include "hash/cpu.h"

#include <immintrin.h>
#include <stdint.h>

#define TARGET __attribute__((target("avx2")))
#define WORTH 512
#define XOR(a, b) _mm256_xor_si256(a, b)
#define AND(a, b) _mm256_and_si256(a, b)
#define XOR3(a, b, c) XOR(XOR(a, b), c)
#define PICK(choice, a, b) XOR(b, AND(XOR(a, b), choice))
#define LOW8(a, b) _mm256_unpacklo_epi8(a, b)
#define HIGH8(a, b) _mm256_unpackhi_epi8(a, b)
#define DIFF(x) _mm256_maddubs_epi16(x, _mm256_set1_epi16((short)0xff01))
#define MAC(sum, x, y) add_products(sum, x, y)
#define ALL(bit) _mm256_set1_epi8((char)-(char)(bit))

typedef __m256i vec;

TARGET static inline __attribute__((always_inline)) vec add_products(vec sum, vec x, vec y) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
    __asm__("" : "+x"(sum)); /* or gcc puts the additions off, and has to spill the products */
    return sum;
}

#include "hash/fnv1a_vector.h"

/*
 * Where things lie. The 11 bits of a byte's number in the block are a10..a0. A register has 32 bytes,
 * numbered by five bits: one for the 128-bit half, then four, x3..x0.
 *
 *   bytes[g][v]    g = a10 a9 a8, v = a2 a1 a0, half = a4, x = a7 a6 a5 a3
 *   planes[k][v]   half and x as above, bit in the byte = a10 a9 a8
 */
static unsigned byte_index(unsigned g, unsigned v, unsigned at) {
    return g * 256 + at / 2 % 8 * 32 + at / 16 * 16 + at % 2 * 8 + v;
}

#define LOW16(a, b) _mm256_unpacklo_epi16(a, b)
#define HIGH16(a, b) _mm256_unpackhi_epi16(a, b)
#define LANES(...) _mm256_broadcastsi128_si256(_mm_setr_epi8(__VA_ARGS__))

/* UNPACK of words takes x3 out, it chooses the result, and puts a bit in at x1, it chooses the operand: three
 * rounds of it put a7 a6 a5 in the place of a2 a1 a0. */
INLINE void spread(struct block *block, const uint8_t *in, int g) {
    const vec order = LANES(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15); /* x = a2 a1 a0 a3 */
    vec r[8], a2[8], a1[8];
    UNROLL for (int i = 0; i < 8; i++) {
        r[i] = _mm256_shuffle_epi8(_mm256_loadu_si256((const vec *)(in + 256 * g + 32 * i)), order);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        a2[i] = LOW16(r[i], r[i + 4]);
        a2[i + 4] = HIGH16(r[i], r[i + 4]);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        int at = i / 2 * 4 + i % 2;
        a1[at] = LOW16(a2[at], a2[at + 2]);
        a1[at + 2] = HIGH16(a2[at], a2[at + 2]);
    }
    UNROLL for (int i = 0; i < 8; i += 2) {
        block->bytes[g][i] = LOW16(a1[i], a1[i + 1]);
        block->bytes[g][i + 1] = HIGH16(a1[i], a1[i + 1]);
    }
}

/* Exchanges the bits of *a under mask << shift with those of *b under mask. */
INLINE void exchange(vec *a, vec *b, int shift, char mask) {
    vec differ = AND(XOR(_mm256_srli_epi16(*a, shift), *b), _mm256_set1_epi8(mask));
    *b = XOR(*b, differ);
    *a = XOR(*a, _mm256_slli_epi16(differ, shift));
}

/* Bit j of register i becomes bit i of register j. */
INLINE void transpose(vec r[8]) {
    UNROLL for (int i = 0; i < 4; i++) {
        exchange(&r[i], &r[i + 4], 4, 0x0f);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        exchange(&r[i / 2 * 4 + i % 2], &r[i / 2 * 4 + i % 2 + 2], 2, 0x33);
    }
    UNROLL for (int i = 0; i < 8; i += 2) {
        exchange(&r[i], &r[i + 1], 1, 0x55);
    }
}

INLINE void plane(struct block *block, int v) {
    vec r[8];
    UNROLL for (int g = 0; g < 8; g++) {
        r[g] = block->bytes[g][v];
    }
    transpose(r);
    UNROLL for (int k = 0; k < 8; k++) {
        block->planes[k][v] = r[k];
    }
}

INLINE void unplane(const struct block *block, int v, vec t[8]) {
    UNROLL for (int k = 0; k < 8; k++) {
        t[k] = block->planes[k][v];
    }
    transpose(t);
}

/*
 * From the finest bit of the lane's number to the coarsest: a3 (bytes of a word), a4 (halves), a7 a6 a5
 * (words of a half), then a10 a9 a8 (bits of a byte) on what all bytes come to, with tables for four bits at
 * a time. The carry is 0 or -1 in every byte.
 */
INLINE vec lanes_below(vec x, vec *carry) {
    const vec swap = LANES(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    const vec lower = LANES(0, -2, -4, 2, -8, 6, 4, -6, -16, 14, 12, -14, 8, -10, -12, 10);
    const vec higher = LANES(0, -32, -64, 32, -128, 96, 64, -96, 0, -32, -64, 32, -128, 96, 64, -96);
    const vec nibble = _mm256_set1_epi8(15);
    vec word = XOR(x, _mm256_shuffle_epi8(x, swap));
    vec other = _mm256_permute4x64_epi64(word, 0x4e);
    vec both = XOR(word, other);
    vec upto = XOR(both, _mm256_slli_si256(both, 2));
    upto = XOR(upto, _mm256_slli_si256(upto, 4));
    upto = XOR(upto, _mm256_slli_si256(upto, 8));
    vec all = _mm256_shuffle_epi8(upto, nibble);
    vec bits = XOR(_mm256_shuffle_epi8(lower, AND(all, nibble)),
        _mm256_shuffle_epi8(higher, AND(_mm256_srli_epi16(all, 4), nibble)));
    bits = XOR(bits, *carry);
    *carry = _mm256_cmpgt_epi8(_mm256_setzero_si256(), XOR(bits, all));
    vec first = XOR(_mm256_slli_epi16(x, 8), _mm256_blend_epi32(_mm256_setzero_si256(), other, 0xf0));
    return XOR(XOR(XOR(upto, both), first), bits);
}

INLINE vec widen_even(vec x) {
    return _mm256_mul_epi32(x, _mm256_set1_epi64x(1));
}

INLINE uint64_t total(vec sums[4]) {
    vec all = _mm256_setzero_si256();
    UNROLL for (int l = 3; l >= 0; l--) {
        vec sum = _mm256_add_epi64(widen_even(sums[l]), widen_even(_mm256_srli_epi64(sums[l], 32)));
        all = _mm256_add_epi64(_mm256_slli_epi64(all, 16), sum);
    }
    __m128i half = _mm_add_epi64(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    return (uint64_t)_mm_cvtsi128_si64(half) + (uint64_t)_mm_extract_epi64(half, 1);
}

const struct fnv1a_kernel fnv1a_avx2 = {
    .name = "avx2",
    .needs = CPU_AVX2,
    .prepare = weights_fill,
    .run = run,
};

#endif
