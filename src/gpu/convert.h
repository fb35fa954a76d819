/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored elements to float32, float16 and bfloat16, one at a time: the arithmetic of the kernels, which nvcc
 * compiles for the device and the tests compile for the host. Values are bit patterns throughout; where a
 * float is used, the result is exact or rounded once, with no fused multiply-add and subnormals kept.
 *
 * Widening is exact and agrees with src/dequant bit for bit. Narrowing rounds to nearest, ties to even; a NaN
 * keeps its sign and the upper bits of its payload, and becomes quiet.
 */
#ifndef GPU_CONVERT_H
#define GPU_CONVERT_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define CONVERT_FN static inline __host__ __device__
#else
#define CONVERT_FN static inline
#endif

/* One row a kernel: its kind, its name. */
#define CONVERT_KINDS(ROW)                                                                                   \
    ROW(F32, ckpt_f32)                                                                                       \
    ROW(F16, ckpt_f16)                                                                                       \
    ROW(BF16, ckpt_bf16)                                                                                     \
    ROW(F8_E5M2, ckpt_f8_e5m2)                                                                               \
    ROW(F8_E4M3, ckpt_f8_e4m3)                                                                               \
    ROW(F8_E8M0, ckpt_f8_e8m0)                                                                               \
    ROW(F8_E5M2FNUZ, ckpt_f8_e5m2fnuz)                                                                       \
    ROW(F8_E4M3FNUZ, ckpt_f8_e4m3fnuz)                                                                       \
    ROW(Q4, ckpt_q4)                                                                                         \
    ROW(Q8, ckpt_q8)

#define CONVERT_ENUM(kind, name) CONVERT_##kind,
enum convert_kind { CONVERT_KINDS(CONVERT_ENUM) CONVERT_COUNT };

enum convert_to { CONVERT_TO_F32, CONVERT_TO_F16, CONVERT_TO_BF16 };

#define CONVERT_BLOCK 32 /* elements that share a scale */
#define CONVERT_NAN 0x7fc00000u

CONVERT_FN float convert_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

CONVERT_FN uint32_t convert_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

/* ---- to float32 -------------------------------------------------------------------------------------- */

/* A finite value of a format with that many mantissa bits and that exponent bias; all are normal float32s. */
CONVERT_FN uint32_t convert_finite(
    uint32_t sign, uint32_t exponent, uint32_t mantissa, uint32_t mantissa_bits, uint32_t bias) {
    if (exponent)
        return sign << 31 | (exponent + 127 - bias) << 23 | mantissa << (23 - mantissa_bits);
    float unit = convert_float((128 - bias - mantissa_bits) << 23);
    return sign << 31 | convert_bits((float)mantissa * unit);
}

CONVERT_FN uint32_t convert_f16(uint32_t h) {
    uint32_t sign = h >> 15, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    if (exponent == 31)
        return sign << 31 | 0x7f800000u | mantissa << 13;
    return convert_finite(sign, exponent, mantissa, 10, 15);
}

/* The upper half of a float16, but all its NaNs are one. */
CONVERT_FN uint32_t convert_e5m2(uint32_t b) {
    return (b & 0x7f) > 0x7c ? CONVERT_NAN : convert_f16(b << 8);
}

CONVERT_FN uint32_t convert_e4m3(uint32_t b) {
    return (b & 0x7f) == 0x7f ? CONVERT_NAN : convert_finite(b >> 7, b >> 3 & 15, b & 7, 3, 7);
}

CONVERT_FN uint32_t convert_e8m0(uint32_t b) {
    return b == 255 ? CONVERT_NAN : b ? b << 23 : 0x00400000u;
}

CONVERT_FN uint32_t convert_e5m2fnuz(uint32_t b) {
    return b == 0x80 ? CONVERT_NAN : convert_finite(b >> 7, b >> 2 & 31, b & 3, 2, 16);
}

CONVERT_FN uint32_t convert_e4m3fnuz(uint32_t b) {
    return b == 0x80 ? CONVERT_NAN : convert_finite(b >> 7, b >> 3 & 15, b & 7, 3, 8);
}

/* float32(q x scale). The NaNs are those of x86: the scale's own, made quiet, or that of 0 x infinity. */
CONVERT_FN uint32_t convert_scaled(int32_t q, uint32_t scale) {
    if ((scale & 0x7fffffff) > 0x7f800000)
        return scale | 0x00400000;
    if ((scale & 0x7fffffff) == 0x7f800000 && q == 0)
        return 0xffc00000;
#ifdef __CUDA_ARCH__
    return convert_bits(__fmul_rn((float)q, convert_float(scale)));
#else
    return convert_bits((float)q * convert_float(scale));
#endif
}

/* Element i of a dense run, or of all blocks' integers with their scales; both aligned for their type. */
CONVERT_FN uint32_t convert_value(enum convert_kind kind, const void *in, const void *scales, uint64_t i) {
    const uint8_t *bytes = (const uint8_t *)in;
    switch (kind) {
    case CONVERT_F32:
        return ((const uint32_t *)in)[i];
    case CONVERT_F16:
        return convert_f16(((const uint16_t *)in)[i]);
    case CONVERT_BF16:
        return (uint32_t)((const uint16_t *)in)[i] << 16;
    case CONVERT_F8_E5M2:
        return convert_e5m2(bytes[i]);
    case CONVERT_F8_E4M3:
        return convert_e4m3(bytes[i]);
    case CONVERT_F8_E8M0:
        return convert_e8m0(bytes[i]);
    case CONVERT_F8_E5M2FNUZ:
        return convert_e5m2fnuz(bytes[i]);
    case CONVERT_F8_E4M3FNUZ:
        return convert_e4m3fnuz(bytes[i]);
    case CONVERT_Q4:
        return convert_scaled(
            (bytes[i / 2] >> (i % 2 * 4) & 15) - 7, ((const uint32_t *)scales)[i / CONVERT_BLOCK]);
    case CONVERT_Q8:
        return convert_scaled((int8_t)bytes[i], ((const uint32_t *)scales)[i / CONVERT_BLOCK]);
    default:
        return CONVERT_NAN;
    }
}

/* ---- from float32 ------------------------------------------------------------------------------------ */

/* value / 2^shift, ties to even; shift from 1 to 31. */
CONVERT_FN uint32_t convert_round(uint32_t value, uint32_t shift) {
    uint32_t whole = value >> shift, rest = value & ((1u << shift) - 1), half = 1u << (shift - 1);
    return whole + (rest > half || (rest == half && whole & 1));
}

CONVERT_FN uint32_t convert_to_f16(uint32_t bits) {
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return sign | 0x7e00 | (size >> 13 & 0x3ff);
    if (size >= 0x47800000) /* 2^16 */
        return sign | 0x7c00;
    if (size >= 0x38800000) /* 2^-14, the smallest normal; rounding up may carry into the exponent */
        return sign | convert_round(size - 0x38000000, 13);
    if (size < 0x33000000) /* 2^-25, half of the smallest subnormal */
        return sign;
    return sign | convert_round((size & 0x7fffff) | 0x800000, 126 - (size >> 23));
}

CONVERT_FN uint32_t convert_to_bf16(uint32_t bits) {
    uint32_t size = bits & 0x7fffffff;
    return size > 0x7f800000 ? bits >> 16 | 0x40 : convert_round(bits, 16);
}

/* Element i of the result, which is aligned for its type. */
CONVERT_FN void convert_store(enum convert_to to, void *out, uint64_t i, uint32_t bits) {
    if (to == CONVERT_TO_F32)
        ((uint32_t *)out)[i] = bits;
    else
        ((uint16_t *)out)[i] =
            (uint16_t)(to == CONVERT_TO_F16 ? convert_to_f16(bits) : convert_to_bf16(bits));
}

#endif
