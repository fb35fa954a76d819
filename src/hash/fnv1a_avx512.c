/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a with AVX-512 (see fnv1a_vector.h): blocks of 4 KiB, 512 bit lanes. */
#include "config.h"

#ifdef HAVE_X86_KERNELS

#include "hash/cpu.h"

#include <immintrin.h>
#include <stdint.h>

#define TARGET                                                                                               \
    __attribute__((                                                                                          \
        target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,avx512vpopcntdq,gfni,vpclmulqdq")))
#define WORTH 384
#define XOR(a, b) _mm512_xor_si512(a, b)
#define AND(a, b) _mm512_and_si512(a, b)
#define XOR3(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define PICK(choice, a, b) _mm512_ternarylogic_epi64(choice, a, b, 0xca)
#define LOW8(a, b) _mm512_unpacklo_epi8(a, b)
#define HIGH8(a, b) _mm512_unpackhi_epi8(a, b)
#define DIFF(x) _mm512_maddubs_epi16(x, _mm512_set1_epi16((short)0xff01))
#define MAC(sum, x, y) _mm512_dpwssd_epi32(sum, x, y)
#define ALL(bit) _mm512_set1_epi8((char)(bit))

typedef __m512i vec;

#include "hash/fnv1a_vector.h"

/*
 * Where things lie. The 12 bits of a byte's number in the block are a11..a0. A register has 64 bytes,
 * numbered by six bits: two for the 128-bit part, then four, x3..x0.
 *
 *   bytes[g][v]    g = a9 a8 a7, v = a2 a1 a0, part = a11 a10, x = a6 and a5 a4 a3 inverted
 *   planes[k][v]   part = a11 a10, x = a9 a8 a7 a6, bit in the byte = a5 a4 a3: the lanes lie in order
 *
 * GF2P8AFFINEQB with the data as matrix transposes the 8 x 8 bits of each quadword, but counts its rows from
 * the last: hence the inversion. UNPACK takes x3 out, it chooses the result, and puts a bit in, it chooses
 * the operand; where it goes in depends on the width: bytes at x0, words at x1, doublewords at x2, quadwords
 * at x3.
 */
static unsigned byte_index(unsigned g, unsigned v, unsigned at) {
    return at / 16 * 1024 + g * 128 + at / 8 % 2 * 64 + (7 - at % 8) * 8 + v;
}

#define LOW16(a, b) _mm512_unpacklo_epi16(a, b)
#define HIGH16(a, b) _mm512_unpackhi_epi16(a, b)
#define LOW32(a, b) _mm512_unpacklo_epi32(a, b)
#define HIGH32(a, b) _mm512_unpackhi_epi32(a, b)
#define LOW64(a, b) _mm512_unpacklo_epi64(a, b)
#define HIGH64(a, b) _mm512_unpackhi_epi64(a, b)
#define PARTS(a, b, which) _mm512_shuffle_i64x2(a, b, which)

#define ROWS(byte) ((long long)(UINT64_C(0x0101010101010101) * (byte)))

/* Quadword v of the result: byte v of each quadword, the last first. */
INLINE vec gather(const uint8_t *in) {
    const long long first = 0x0008101820283038, one = 0x0101010101010101;
    const vec order = _mm512_set_epi64(first + 7 * one, first + 6 * one, first + 5 * one, first + 4 * one,
        first + 3 * one, first + 2 * one, first + one, first);
    return _mm512_permutexvar_epi8(order, _mm512_loadu_si512(in));
}

INLINE void transpose_parts(vec r[4]) {
    vec low = PARTS(r[0], r[1], 0x44), high = PARTS(r[0], r[1], 0xee);
    vec low2 = PARTS(r[2], r[3], 0x44), high2 = PARTS(r[2], r[3], 0xee);
    r[0] = PARTS(low, low2, 0x88);
    r[1] = PARTS(low, low2, 0xdd);
    r[2] = PARTS(high, high2, 0x88);
    r[3] = PARTS(high, high2, 0xdd);
}

INLINE void spread(struct block *block, const uint8_t *in, int g) {
    vec even[4], odd[4];
    UNROLL for (int part = 0; part < 4; part++) {
        vec r0 = gather(in + 128 * g + 1024 * part), r1 = gather(in + 128 * g + 1024 * part + 64);
        even[part] = LOW64(r0, r1);
        odd[part] = HIGH64(r0, r1);
    }
    transpose_parts(even);
    transpose_parts(odd);
    UNROLL for (int i = 0; i < 4; i++) {
        block->bytes[g][2 * i] = even[i];
        block->bytes[g][2 * i + 1] = odd[i];
    }
}

INLINE void plane(struct block *block, int v) {
    const vec unit = _mm512_set1_epi64((long long)0x8040201008040201);
    vec r[8], k2[2][4], k1[2][2][2];
    UNROLL for (int g = 0; g < 8; g++) {
        r[g] = _mm512_gf2p8affine_epi64_epi8(unit, block->bytes[g][v], 0);
    }
    UNROLL for (int i = 0; i < 4; i++) { /* a6 out and a7 in, k2 out and a6 in */
        vec low = LOW8(r[2 * i], r[2 * i + 1]), high = HIGH8(r[2 * i], r[2 * i + 1]);
        k2[0][i] = LOW8(low, high);
        k2[1][i] = HIGH8(low, high);
    }
    UNROLL for (int k = 0; k < 2; k++) { /* k1 out and a8 in */
        UNROLL for (int i = 0; i < 2; i++) {
            k1[k][0][i] = LOW32(k2[k][2 * i], k2[k][2 * i + 1]);
            k1[k][1][i] = HIGH32(k2[k][2 * i], k2[k][2 * i + 1]);
        }
    }
    UNROLL for (int k = 0; k < 4; k++) { /* k0 out and a9 in */
        block->planes[2 * k][v] = LOW64(k1[k / 2][k % 2][0], k1[k / 2][k % 2][1]);
        block->planes[2 * k + 1][v] = HIGH64(k1[k / 2][k % 2][0], k1[k / 2][k % 2][1]);
    }
}

/* The way back, without the last of its steps: k0, k1 and k2 in, a9, a8 and a7 out. Plane 7 is row 0. */
INLINE void unplane(const struct block *block, int v, vec t[8]) {
    const vec unit = _mm512_set1_epi64(0x0102040810204080);
    vec a9[2][4], a8[2][2][2];
    UNROLL for (int i = 0; i < 4; i++) {
        a9[0][i] = LOW8(block->planes[7 - 2 * i][v], block->planes[6 - 2 * i][v]);
        a9[1][i] = HIGH8(block->planes[7 - 2 * i][v], block->planes[6 - 2 * i][v]);
    }
    UNROLL for (int a = 0; a < 2; a++) {
        UNROLL for (int i = 0; i < 2; i++) {
            a8[a][0][i] = LOW16(a9[a][2 * i], a9[a][2 * i + 1]);
            a8[a][1][i] = HIGH16(a9[a][2 * i], a9[a][2 * i + 1]);
        }
    }
    UNROLL for (int a = 0; a < 4; a++) {
        vec low = LOW32(a8[a / 2][a % 2][0], a8[a / 2][a % 2][1]);
        vec high = HIGH32(a8[a / 2][a % 2][0], a8[a / 2][a % 2][1]);
        t[2 * a] = _mm512_gf2p8affine_epi64_epi8(unit, low, 0);
        t[2 * a + 1] = _mm512_gf2p8affine_epi64_epi8(unit, high, 0);
    }
}

/*
 * Inside a quadword a carry-less multiplication by all ones but the lowest gives the XOR of the bits below
 * each. Across quadwords: their parities (bit 0 of the population counts) and the carry (bit 0 of byte 56)
 * are collected in every quadword, one byte each; a first affine map packs the eight bits in each byte, the
 * carry on top; a second takes the parity of the upper j + 1 of them in quadword j, eight times.
 */
INLINE vec lanes_below(vec x, vec *carry) {
    const vec ones = _mm512_set1_epi64(-2);
    const vec collect = _mm512_set1_epi64(0x3028201810080078);
    const vec upper = _mm512_set_epi64(
        ROWS(0xff), ROWS(0xfe), ROWS(0xfc), ROWS(0xf8), ROWS(0xf0), ROWS(0xe0), ROWS(0xc0), ROWS(0x80));
    vec inside = _mm512_unpacklo_epi64(
        _mm512_clmulepi64_epi128(x, ones, 0x00), _mm512_clmulepi64_epi128(x, ones, 0x01));
    vec parities = _mm512_popcnt_epi64(x);
    vec bits = _mm512_permutex2var_epi8(parities, collect, *carry);
    bits = _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi8(1), bits, 0);
    vec across = _mm512_gf2p8affine_epi64_epi8(bits, upper, 0);
    *carry = XOR(parities, across);
    return XOR(inside, across);
}

INLINE vec widen_even(vec x) {
    return _mm512_srai_epi64(_mm512_slli_epi64(x, 32), 32);
}

INLINE uint64_t total(vec sums[4]) {
    vec all = _mm512_setzero_si512();
    UNROLL for (int l = 3; l >= 0; l--) {
        vec sum = _mm512_add_epi64(widen_even(sums[l]), _mm512_srai_epi64(sums[l], 32));
        all = _mm512_add_epi64(_mm512_slli_epi64(all, 16), sum);
    }
    __m256i half = _mm256_add_epi64(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    __m128i quarter = _mm_add_epi64(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return (uint64_t)_mm_cvtsi128_si64(quarter) + (uint64_t)_mm_extract_epi64(quarter, 1);
}

const struct fnv1a_kernel fnv1a_avx512 = {
    .name = "avx512",
    .needs = CPU_AVX512,
    .prepare = weights_fill,
    .run = run,
};

#endif
