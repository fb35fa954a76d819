/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/ovf.h"

#include <string.h>

/* Length of the UTF-8 sequence at s (left > 0 bytes there), 0 when malformed. Ranges: RFC 3629, section 4. */
static size_t utf8_sequence(const uint8_t *s, size_t left) {
    uint8_t lead = s[0], low = 0x80, high = 0xBF;
    size_t len = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (len < 2)
        return len;
    if (lead == 0xE0)
        low = 0xA0;
    if (lead == 0xED)
        high = 0x9F;
    if (lead == 0xF0)
        low = 0x90;
    if (lead == 0xF4)
        high = 0x8F;
    if (left < len || s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return len;
}

bool text_is_utf8(const void *bytes, size_t len) {
    const uint8_t *s = bytes;
    for (size_t i = 0; i < len;) {
        size_t step = utf8_sequence(s + i, len - i);
        if (!step)
            return false;
        i += step;
    }
    return true;
}

void text_hex(const uint8_t *bytes, size_t len, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * len] = '\0';
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool text_unhex(const char *hex, size_t len, uint8_t *out) {
    if (strlen(hex) != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* Reads the digits that text starts with; returns where they end, NULL when there are none or too many. */
static const char *digits(const char *text, uint64_t *ret_value) {
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (!ovf_mul(value, 10, &value) || !ovf_add(value, (uint64_t)(*at - '0'), &value))
            return NULL;
    *ret_value = value;
    return at == text ? NULL : at;
}

bool text_u64(const char *text, uint64_t *ret_value) {
    uint64_t value;
    const char *end = digits(text, &value);
    if (!end || *end)
        return false;
    *ret_value = value;
    return true;
}

bool text_size(const char *text, uint64_t *ret_bytes) {
    static const char suffixes[] = "KMGT";
    uint64_t value, unit = 1;
    const char *end = digits(text, &value);
    if (!end)
        return false;
    if (*end) {
        const char *suffix = strchr(suffixes, *end);
        if (!suffix || end[1])
            return false;
        unit = (uint64_t)1 << (10 * (suffix - suffixes + 1));
    }
    return ovf_mul(value, unit, ret_bytes);
}
