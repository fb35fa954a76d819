/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FNV-1a of one stream, exact, faster than its chain of multiplications: what the vector kernels share. Each
 * includes this file after it has defined the operations listed below.
 *
 * The hash is h' = (h ^ b) * p mod 2^64 with p = 2^40 + 435: as written, every byte waits for a product.
 *
 * 1. The low byte leads a life of its own. With s = h mod 256 and t = s ^ b
 *
 *        s' = t * 179 mod 256        (435 mod 256 is 179, and 2^40 does not reach the low byte).
 *
 * 2. Given the low bytes, the rest is linear. h ^ b = h + d with d = t - s, so h' = (h + d) * p, and over a
 *    block of N bytes
 *
 *        h_N = h_0 p^N + sum over n of d_n p^(N-n),
 *
 *    a dot product with constants. The products fit when each constant is split in four 16-bit limbs.
 *
 * 3. The low bytes are eight prefix sums over XOR. Bit k of t * 179 is t_k ^ g_k, where g_k depends on the
 *    lower bits of t alone. So bit k of s changes by x_k = b_k ^ g_k at each byte, and
 *
 *        t_k[n] = b_k[n] ^ (s_k at the block's start) ^ (XOR of x_k[m] for m < n).
 *
 *    Level k needs the levels below it, and one carry bit from the block before.
 *
 * 4. The gates. 179 = 3 * 17 + 128: t * 179 is two additions, w = t + 2 t and w + 16 w, and t_0 into bit 7.
 *    With the carries c of the first and e of the second (maj is the majority of three)
 *
 *        w_0 = t_0,  w_k = t_k ^ t_(k-1) ^ c_k
 *        c_1 = 0,    c_(k+1) = maj(t_k, t_(k-1), c_k)
 *        e_4 = 0,    e_(k+1) = maj(w_k, w_(k-4), e_k)
 *        g_0 = 0,    g_k = t_(k-1) ^ c_k, from k = 4 on also ^ w_(k-4) ^ e_k, for k = 7 also ^ t_0.
 *
 * 5. The layout. Bytes are spread over bit lanes: a lane holds eight consecutive bytes, register (k, v)
 *    holds bit k of byte v of every lane. The prefix over a block is then a running XOR over the columns and
 *    ONE prefix over the lanes of a register for each level. How bytes become planes is up to the kernel; so
 *    is the order of the lanes in a register, as the constants of the dot product are put in the same order.
 *
 * 6. The end of the input. Zeros give d = 0: a short last block is padded with zeros. Each multiplies the
 *    hash by p, which has an inverse mod 2^64.
 *
 * Levels wait for each other, the rest is throughput. So three blocks are under way: the levels of one run
 * between the spreading of the next and the dot product of the one before.
 *
 * The includer defines:
 *   TARGET              the function attribute that switches its instructions on
 *   WORTH               a last block of fewer bytes is cheaper byte by byte
 *   vec                 the register type
 *   XOR AND XOR3        logic
 *   PICK(choice, a, b)  the bits of a where choice is set, of b elsewhere
 *   LOW8 HIGH8          interleave the bytes of two registers: the lower or higher half of each 128 bits
 *   DIFF(x)             16-bit words: (even byte) - (odd byte), both unsigned
 *   MAC(sum, x, y)      32-bit sums: adds the products of pairs of 16-bit words
 *   ALL(bit)            a carry (see lanes_below) that is `bit`
 */
#ifndef HASH_FNV1A_VECTOR_H
#define HASH_FNV1A_VECTOR_H

#include "hash/fnv1a.h"
#include "hash/fnv1a_kernel.h"

#include <string.h>

#define INLINE TARGET static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum {
    COLUMNS = 8, /* bytes in a lane */
    BLOCK = 8 * COLUMNS * sizeof(vec),
    WORDS = sizeof(vec) / 2,
};

#define PRIME_INVERSE UINT64_C(0xce965057aff6957b)
_Static_assert(1 == FNV1A64_PRIME * PRIME_INVERSE, "not the inverse");
/* A 32-bit sum takes two products from each half of a register, four registers of a column, all columns. */
_Static_assert(COLUMNS * 4 * 2 * 2 * INT64_C(255) * 32768 <= INT32_MAX, "sums overflow");

struct block {
    vec bytes[8][COLUMNS];  /* bytes of column v, in the order that `unplane` restores */
    vec planes[8][COLUMNS]; /* bit k of b, and after level k of t */
    vec gap; /* keeps blocks off multiples of 4 KiB, where loads mistake stores for their own */
};

struct gates {
    vec c[COLUMNS], e[COLUMNS];
    vec w[4][COLUMNS]; /* w_0 is t_0 and not kept */
};

struct work {
    struct block ring[3];
    struct gates gates;
    vec carry[8];   /* bit k of s where the next block starts */
    vec sums[2][4]; /* for g < 4 and g >= 4: four limbs each */
};

/* ---- what the includer supplies --------------------------------------------------------------------- */

/* Spreads row g (0..7) of the input into block->bytes; once all rows are there, its column v into planes. */
INLINE void spread(struct block *block, const uint8_t *in, int g);
INLINE void plane(struct block *block, int v);
/* The bytes t of column v, in the order of block->bytes[..][v]. */
INLINE void unplane(const struct block *block, int v, vec t[8]);
/* For each lane the XOR of the lanes below it and of *carry; *carry becomes the same for the next block. */
INLINE vec lanes_below(vec x, vec *carry);
/* The sum of all lanes, limb l weighing 2^(16 l). */
INLINE uint64_t total(vec sums[4]);
/* Which byte of a block lies at byte `at` of register bytes[g][v]. */
static unsigned byte_index(unsigned g, unsigned v, unsigned at);

/* ---- the dot product -------------------------------------------------------------------------------- */

/* The constants of section 2 for bytes[4..7] in the order in which `dot` meets them; written by weights_fill
 * alone. bytes[0..3] come a fixed distance before them, so their sum only takes another power of p: half the
 * table, and what is read of it is used twice. */
static struct { vec limb[COLUMNS][4][2][4]; } weights;

static uint64_t power(uint64_t base, unsigned exponent) {
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

/* Signed limbs: each takes the nearest value, and the next one the rest. */
static void weight_store(unsigned v, unsigned g, unsigned half, unsigned word) {
    unsigned at = word / 8 * 16 + half * 8 + word % 8; /* LOW8 and HIGH8 put this byte in that word */
    uint64_t rest = power(FNV1A64_PRIME, BLOCK - byte_index(g + 4, v, at));
    for (int l = 0; l < 4; l++) {
        int16_t limb = (int16_t)(uint16_t)rest;
        memcpy((char *)&weights.limb[v][g][half][l] + 2 * word, &limb, sizeof limb);
        rest = (rest - (uint64_t)limb) >> 16;
    }
}

static void weights_fill(void) {
    for (unsigned v = 0; v < COLUMNS; v++)
        for (unsigned g = 0; g < 4; g++)
            for (unsigned word = 0; word < 2 * WORDS; word++)
                weight_store(v, g, word / WORDS, word % WORDS);
}

/* Adds the words d of one half register, weighed, to the sums of the four limbs. */
INLINE void add_weighed(vec sums[4], vec d, const vec limb[4]) {
    UNROLL for (int l = 0; l < 4; l++) {
        sums[l] = MAC(sums[l], d, limb[l]);
    }
}

INLINE void dot(struct work *work, const struct block *block, int v) {
    vec t[8], sums[2][4];
    unplane(block, v, t);
    memcpy(sums, work->sums, sizeof sums);
    UNROLL for (int i = 0; i < 8; i++) {
        int upper = i % 2, g = i / 2 + 4 * upper;
        vec s = XOR(t[g], block->bytes[g][v]);
        add_weighed(sums[upper], DIFF(LOW8(t[g], s)), weights.limb[v][g % 4][0]);
        add_weighed(sums[upper], DIFF(HIGH8(t[g], s)), weights.limb[v][g % 4][1]);
    }
    memcpy(work->sums, sums, sizeof sums);
}

/* The powers of p that the end of a block needs. */
struct powers {
    uint64_t block, half; /* of a block's bytes, and of the distance from bytes[0..3] to bytes[4..7] */
};

static struct powers powers_of_prime(void) {
    return (struct powers){
        .block = power(FNV1A64_PRIME, BLOCK),
        .half = power(FNV1A64_PRIME, byte_index(4, 0, 0) - byte_index(0, 0, 0)),
    };
}

INLINE uint64_t block_end(struct work *work, uint64_t h, struct powers powers) {
    h = h * powers.block + total(work->sums[0]) * powers.half + total(work->sums[1]);
    memset(work->sums, 0, sizeof work->sums);
    return h;
}

/* ---- the levels ------------------------------------------------------------------------------------- */

/* Level k of sections 3 and 4. A majority is what two agree on: where t_(k-1) and c_k differ (their XOR is
 * `three`), c_(k+1) is t_k, elsewhere c_k. */
INLINE void level(struct work *work, struct block *block, int k) {
    struct gates *gates = &work->gates;
    vec *b = block->planes[k], *t0 = block->planes[0], *below = k ? block->planes[k - 1] : NULL;
    vec *w4 = k < 4 ? NULL : k == 4 ? t0 : gates->w[k - 4];
    vec three[COLUMNS], four[COLUMNS]; /* what g_k takes from the sum 3 t, and from w + 16 w */
    vec before[COLUMNS], run;          /* XOR of x over the columns before v */
    UNROLL for (int v = 0; v < COLUMNS; v++) {
        vec x = b[v];
        if (k > 0)
            three[v] = k == 1 ? t0[v] : XOR(below[v], gates->c[v]);
        if (k > 4)
            four[v] = XOR(w4[v], gates->e[v]);
        if (k == 7)
            x = XOR(x, t0[v]);
        if (k > 0)
            x = k < 4 ? XOR(x, three[v]) : XOR3(x, three[v], k == 4 ? t0[v] : four[v]);
        before[v] = v ? run : x;
        run = v ? XOR(run, x) : x;
    }
    vec start = lanes_below(run, &work->carry[k]);
    UNROLL for (int v = 0; v < COLUMNS; v++) {
        vec t = v ? XOR3(b[v], before[v], start) : XOR(b[v], start);
        b[v] = t;
        if (k == 0 || k == 7)
            continue;
        vec w = XOR(t, three[v]);
        if (k < 4)
            gates->w[k][v] = w;
        if (k >= 4)
            gates->e[v] = k == 4 ? AND(w, t0[v]) : PICK(four[v], w, gates->e[v]);
        gates->c[v] = k == 1 ? AND(t, t0[v]) : PICK(three[v], t, gates->c[v]);
    }
}

/* k is a constant in each call, so that the conditions in `level` vanish. */
INLINE void level_of(struct work *work, struct block *block, int k) {
#define LEVEL(number)                                                                                        \
    case number:                                                                                             \
        level(work, block, number);                                                                          \
        break
    switch (k) {
        LEVEL(0);
        LEVEL(1);
        LEVEL(2);
        LEVEL(3);
        LEVEL(4);
        LEVEL(5);
        LEVEL(6);
        LEVEL(7);
    }
#undef LEVEL
}

/* ---- the pipeline ----------------------------------------------------------------------------------- */

#define AHEAD 16384 /* bytes from what is spread to what is prefetched, to the L2: the work fills the L1 */
#define BARRIER() __asm__ volatile("" ::: "memory") /* mixing the phases would only need more registers */

INLINE void prefetch(const uint8_t *in, int k) {
    for (int i = 0; i < BLOCK / 8; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)in + (size_t)(AHEAD + BLOCK / 8 * k + i)), 0, 2);
}

/* The eighth k of the spreading of `in` to block. */
INLINE void spread_step(struct block *block, const uint8_t *in, int k) {
    prefetch(in, k);
    if (k < 4) {
        spread(block, in, 2 * k);
        spread(block, in, 2 * k + 1);
        return;
    }
    plane(block, 2 * (k - 4));
    plane(block, 2 * (k - 4) + 1);
}

/* One of eight steps for a block: level k of `now`, and as much of the others' work; NULL: nothing to do. */
INLINE void step(
    struct work *work, struct block *next, struct block *now, struct block *done, const uint8_t *in, int k) {
    if (now)
        level_of(work, now, k);
    BARRIER();
    if (done)
        dot(work, done, k);
    BARRIER();
    if (in)
        spread_step(next, in, k);
    BARRIER();
}

/* Over `full` blocks at `in`, and over the block at `last` unless it is NULL. */
TARGET static uint64_t blocks(uint64_t h, const uint8_t *in, size_t full, const uint8_t *last) {
    const struct powers powers = powers_of_prime();
    const size_t count = full + (last != NULL);
    struct work work;
    struct block *next = &work.ring[0], *now = NULL, *done = NULL;
    for (unsigned k = 0; k < 8; k++)
        work.carry[k] = ALL(h >> k & 1);
    memset(work.sums, 0, sizeof work.sums);
    for (size_t n = 0; n < count + 2; n++) {
        const uint8_t *from = n < full ? in + n * BLOCK : n < count ? last : NULL;
        for (int k = 0; k < 8; k++)
            step(&work, next, now, done, from, k);
        if (done)
            h = block_end(&work, h, powers);
        done = now;
        now = from ? next : NULL;
        next = &work.ring[(n + 1) % 3];
    }
    return h;
}

TARGET static uint64_t run(uint64_t h, const void *bytes, size_t len) {
    if (len < WORTH)
        return fnv1a_portable.run(h, bytes, len);
    const uint8_t *in = bytes;
    const size_t full = len / BLOCK, rest = len % BLOCK;
    if (rest < WORTH)
        return fnv1a_portable.run(blocks(h, in, full, NULL), in + full * BLOCK, rest);
    uint8_t last[BLOCK];
    memcpy(last, in + full * BLOCK, rest);
    memset(last + rest, 0, BLOCK - rest);
    return blocks(h, in, full, last) * power(PRIME_INVERSE, (unsigned)(BLOCK - rest));
}

#endif
