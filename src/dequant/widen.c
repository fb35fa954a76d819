/* SPDX-License-Identifier: Apache-2.0 */
#include "dequant/dequant.h"

#include <endian.h>
#include <math.h>
#include <string.h>

/*
 * The 8-bit floats, computed by the compiler. A finite value is sign * significand * 2^exponent * 2^-bias',
 * where bias' counts the mantissa's bits too: every factor is a float and so is every product, exactly.
 */
#define SIGN(b) ((b)&0x80 ? -1.0f : 1.0f)
#define MANTISSA(b, bits) ((b) & ((1 << (bits)) - 1))
#define EXPONENT(b, bits) (((b)&0x7f) >> (bits))
#define SIGNIFICAND(b, bits) ((float)((EXPONENT(b, bits) ? 1 << (bits) : 0) + MANTISSA(b, bits)))
#define POWER(b, bits) ((float)(1u << (EXPONENT(b, bits) ? EXPONENT(b, bits) : 1)))
#define FINITE(b, bits, unit) (SIGN(b) * SIGNIFICAND(b, bits) * POWER(b, bits) * (unit))

/* An all-ones exponent is an infinity or a NaN. */
#define E5M2(b) (EXPONENT(b, 2) == 31 ? (MANTISSA(b, 2) ? NAN : SIGN(b) * INFINITY) : FINITE(b, 2, 0x1p-17f))
/* Only S.1111.111 is a NaN. */
#define E4M3(b) (((b)&0x7f) == 0x7f ? NAN : FINITE(b, 3, 0x1p-10f))
/* The FNUZ types: 0x80 is the only NaN, and there is no negative zero. */
#define E5M2FNUZ(b) ((b) == 0x80 ? NAN : FINITE(b, 2, 0x1p-18f))
#define E4M3FNUZ(b) ((b) == 0x80 ? NAN : FINITE(b, 3, 0x1p-11f))

#define ROW4(of, b) of(b), of((b) + 1), of((b) + 2), of((b) + 3)
#define ROW16(of, b) ROW4(of, b), ROW4(of, (b) + 4), ROW4(of, (b) + 8), ROW4(of, (b) + 12)
#define ROW64(of, b) ROW16(of, b), ROW16(of, (b) + 16), ROW16(of, (b) + 32), ROW16(of, (b) + 48)
#define TABLE(of)                                                                                            \
    { ROW64(of, 0), ROW64(of, 64), ROW64(of, 128), ROW64(of, 192) }

static const float e5m2[256] = TABLE(E5M2);
static const float e4m3[256] = TABLE(E4M3);
static const float e5m2fnuz[256] = TABLE(E5M2FNUZ);
static const float e4m3fnuz[256] = TABLE(E4M3FNUZ);

static inline void put_word(uint8_t *out, uint32_t word) {
    word = htole32(word);
    memcpy(out, &word, 4);
}

static void widen_table(const float table[256], const uint8_t *in, uint64_t count, uint8_t *out) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, &table[in[i]], 4);
        put_word(out + 4 * i, word);
    }
}

/* A power of two: 2^(byte - 127) is the byte in float32's exponent field; 0 is the subnormal 2^-127. */
static void widen_e8m0(const uint8_t *in, uint64_t count, uint8_t *out) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t byte = in[i];
        put_word(out + 4 * i, byte == 255 ? 0x7fc00000 : byte ? byte << 23 : 0x00400000);
    }
}

/* BF16 is the upper half of a float32. Runs of fixed length vectorize at -O2. */
#define RUN 32

static void widen_bf16(const uint8_t *in, uint64_t count, uint8_t *out) {
    uint64_t done = 0;
    for (; count - done >= RUN; done += RUN) {
        uint16_t half[RUN];
        uint32_t word[RUN];
        memcpy(half, in + 2 * done, sizeof half);
        for (int i = 0; i < RUN; i++)
            word[i] = htole32((uint32_t)le16toh(half[i]) << 16);
        memcpy(out + 4 * done, word, sizeof word);
    }
    for (; done < count; done++)
        put_word(out + 4 * done, (uint32_t)in[2 * done] << 16 | (uint32_t)in[2 * done + 1] << 24);
}

void widen(enum dtype dtype, const uint8_t *in, uint64_t count, uint8_t *out) {
    switch (dtype) {
    case DTYPE_BF16:
        widen_bf16(in, count, out);
        break;
    case DTYPE_F8_E5M2:
        widen_table(e5m2, in, count, out);
        break;
    case DTYPE_F8_E4M3:
        widen_table(e4m3, in, count, out);
        break;
    case DTYPE_F8_E5M2FNUZ:
        widen_table(e5m2fnuz, in, count, out);
        break;
    case DTYPE_F8_E4M3FNUZ:
        widen_table(e4m3fnuz, in, count, out);
        break;
    case DTYPE_F8_E8M0:
        widen_e8m0(in, count, out);
        break;
    default: /* the caller asked for a type that does not widen */
        break;
    }
}
