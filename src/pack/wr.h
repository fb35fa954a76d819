/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor that writes little-endian fields into memory that was sized and zeroed for them. */
#ifndef PACK_WR_H
#define PACK_WR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct wr {
    uint8_t *at;
};

static inline void wr_le(struct wr *wr, uint64_t value, size_t width) {
    for (size_t i = 0; i < width; i++)
        wr->at[i] = (uint8_t)(value >> (8 * i));
    wr->at += width;
}

static inline void wr_u8(struct wr *wr, uint8_t value) {
    wr_le(wr, value, 1);
}

static inline void wr_u32(struct wr *wr, uint32_t value) {
    wr_le(wr, value, 4);
}

static inline void wr_u64(struct wr *wr, uint64_t value) {
    wr_le(wr, value, 8);
}

/* Leaves len bytes as they are. */
static inline void wr_skip(struct wr *wr, size_t len) {
    wr->at += len;
}

/* len bytes of text into a field of `width`, which stays zero after them. */
static inline void wr_text(struct wr *wr, const char *text, size_t len, size_t width) {
    if (len)
        memcpy(wr->at, text, len);
    wr->at += width;
}

#endif
