/* SPDX-License-Identifier: Apache-2.0 */
#include "dequant/dequant.h"

#include <endian.h>
#include <string.h>

#define Q4_BYTES (DEQUANT_BLOCK / 2)
#define Q8_BYTES DEQUANT_BLOCK
#define OUT_BYTES (4 * DEQUANT_BLOCK)

unsigned dequant_block_bytes(enum encoding encoding) {
    return encoding == ENCODING_Q4 ? Q4_BYTES : Q8_BYTES;
}

/* One block's integers as floats. The loops' fixed length is what lets the compiler vectorize them. */
typedef void unpack_fn(const uint8_t *ints, float q[DEQUANT_BLOCK]);

static inline void unpack_q4(const uint8_t *ints, float q[DEQUANT_BLOCK]) {
    for (int i = 0; i < Q4_BYTES; i++) {
        q[2 * i] = (float)((ints[i] & 15) - 7);
        q[2 * i + 1] = (float)((ints[i] >> 4) - 7);
    }
}

static inline void unpack_q8(const uint8_t *ints, float q[DEQUANT_BLOCK]) {
    for (int i = 0; i < DEQUANT_BLOCK; i++)
        q[i] = (float)(int8_t)ints[i];
}

/* q has at most 9 bits and the scale 24: the product is exact before its one rounding to float32. */
static inline void scale_block(const float q[DEQUANT_BLOCK], const uint8_t *scale_bytes, uint8_t *out) {
    uint32_t word;
    float scale, values[DEQUANT_BLOCK];
    memcpy(&word, scale_bytes, 4);
    word = le32toh(word);
    memcpy(&scale, &word, 4);
    for (int i = 0; i < DEQUANT_BLOCK; i++)
        values[i] = q[i] * scale;
    uint32_t words[DEQUANT_BLOCK];
    memcpy(words, values, sizeof words);
    for (int i = 0; i < DEQUANT_BLOCK; i++)
        words[i] = htole32(words[i]);
    memcpy(out, words, sizeof words);
}

/* Inlined into each kernel, so that `unpack` is no call. */
static inline __attribute__((always_inline)) void dequant_blocks(unpack_fn *unpack, unsigned block_bytes,
    const uint8_t *ints, const uint8_t *scales, uint64_t skip, uint64_t count, uint8_t *out) {
    float q[DEQUANT_BLOCK];
    while (count) {
        unpack(ints, q);
        uint64_t n = count < DEQUANT_BLOCK - skip ? count : DEQUANT_BLOCK - skip;
        if (n == DEQUANT_BLOCK) {
            scale_block(q, scales, out);
        } else {
            uint8_t part[OUT_BYTES];
            scale_block(q, scales, part);
            memcpy(out, part + 4 * skip, 4 * n);
        }
        ints += block_bytes;
        scales += 4;
        out += 4 * n;
        count -= n;
        skip = 0;
    }
}

void dequant_q4(const uint8_t *ints, const uint8_t *scales, uint64_t skip, uint64_t count, uint8_t *out) {
    dequant_blocks(unpack_q4, Q4_BYTES, ints, scales, skip, count, out);
}

void dequant_q8(const uint8_t *ints, const uint8_t *scales, uint64_t skip, uint64_t count, uint8_t *out) {
    dequant_blocks(unpack_q8, Q8_BYTES, ints, scales, skip, count, out);
}
