/* SPDX-License-Identifier: Apache-2.0 */
/* Checked arithmetic: every number that comes from a file goes through here. */
#ifndef BASE_OVF_H
#define BASE_OVF_H

#include <stdbool.h>
#include <stdint.h>

/* *ret = a + b, a * b, or false and *ret untouched when it does not fit 64 bits. */
static inline bool ovf_add(uint64_t a, uint64_t b, uint64_t *ret) {
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *ret = sum;
    return true;
}

static inline bool ovf_mul(uint64_t a, uint64_t b, uint64_t *ret) {
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *ret = product;
    return true;
}

/* True when [off, off + len) lies inside [0, size); never overflows. */
static inline bool ovf_inside(uint64_t off, uint64_t len, uint64_t size) {
    return off <= size && len <= size - off;
}

static inline uint64_t ovf_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t ovf_max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

#endif
