/* SPDX-License-Identifier: Apache-2.0 */
/* Text: UTF-8 validity, hexadecimal, sizes with a suffix. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True when the bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). NUL is a byte like
 * others. */
bool text_is_utf8(const void *bytes, size_t len);

/* 2 * len lowercase digits and a NUL into out. */
void text_hex(const uint8_t *bytes, size_t len, char *out);
/* Exactly 2 * len hex digits (either case) and nothing more into out; false otherwise. */
bool text_unhex(const char *hex, size_t len, uint8_t *out);

/* "64M", "1G", "4096": digits and an optional K, M, G or T (powers of 1024). False when malformed or too
 * large. */
bool text_size(const char *text, uint64_t *ret_bytes);
/* Decimal digits only. */
bool text_u64(const char *text, uint64_t *ret_value);

#endif
