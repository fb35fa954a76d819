/* SPDX-License-Identifier: Apache-2.0 */
/* Text to the bits of a float32, without the process's locale. */
#ifndef PACK_FLOAT_TEXT_H
#define PACK_FLOAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOAT_NAN UINT32_C(0x7fc00000)

/* A JSON number to the nearest float32. INVAL when that is infinite, NOMEM. */
int float_of_number(const char *text, size_t len, uint32_t *ret_bits);
/* "NaN" (FLOAT_NAN), "Infinity", "-Infinity", and as Python's repr has them: "nan", "inf", "-inf". */
bool float_of_name(const char *text, size_t len, uint32_t *ret_bits);

static inline bool float_is_nan(uint32_t bits) {
    return (bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000);
}

#endif
