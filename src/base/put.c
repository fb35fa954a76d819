/* SPDX-License-Identifier: Apache-2.0 */
#include "base/put.h"

unsigned put_digits(uint64_t value) {
    unsigned digits = 1;
    for (; value >= 10; value /= 10)
        digits++;
    return digits;
}

void put_u64(struct buf *buf, uint64_t value) {
    char text[20];
    size_t at = sizeof text;
    do
        text[--at] = (char)('0' + value % 10);
    while (value /= 10);
    buf_put(buf, text + at, sizeof text - at);
}

void put_list(struct buf *buf, const uint64_t *values, uint32_t count, const char *comma) {
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            buf_puts(buf, comma);
        put_u64(buf, values[i]);
    }
}
