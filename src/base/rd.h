/* SPDX-License-Identifier: Apache-2.0 */
/* A bounds-checked cursor over foreign bytes, little-endian. Reading past the end yields zeros and sets
 * `short_` for good, so that a run of fields is read first and checked once. */
#ifndef BASE_RD_H
#define BASE_RD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rd {
    const uint8_t *at;
    size_t left;
    bool short_;
};

static inline struct rd rd_over(const void *bytes, size_t len) {
    return (struct rd){.at = bytes, .left = len, .short_ = false};
}

/* The next len bytes, or NULL when there are fewer. */
static inline const uint8_t *rd_bytes(struct rd *rd, size_t len) {
    if (len > rd->left) {
        rd->short_ = true;
        rd->left = 0;
        return NULL;
    }
    const uint8_t *at = rd->at;
    rd->at += len;
    rd->left -= len;
    return at;
}

static inline uint64_t rd_le(struct rd *rd, size_t width) {
    const uint8_t *at = rd_bytes(rd, width);
    uint64_t value = 0;
    for (size_t i = 0; at && i < width; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static inline uint8_t rd_u8(struct rd *rd) {
    return (uint8_t)rd_le(rd, 1);
}

static inline uint32_t rd_u32(struct rd *rd) {
    return (uint32_t)rd_le(rd, 4);
}

static inline uint64_t rd_u64(struct rd *rd) {
    return rd_le(rd, 8);
}

static inline int64_t rd_i64(struct rd *rd) {
    return (int64_t)rd_le(rd, 8);
}

/* The float whose bit pattern comes next. */
static inline float rd_f32(struct rd *rd) {
    uint32_t bits = rd_u32(rd);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void rd_skip(struct rd *rd, size_t len) {
    (void)rd_bytes(rd, len);
}

#endif
