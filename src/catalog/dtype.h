/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar types: one row each. */
#ifndef CATALOG_DTYPE_H
#define CATALOG_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
    DTYPE_F32, /* the first 15 are in the order of the .oam wire values */
    DTYPE_BF16,
    DTYPE_F16,
    DTYPE_I8,
    DTYPE_I32,
    DTYPE_U8,
    DTYPE_F64,
    DTYPE_I16,
    DTYPE_I64,
    DTYPE_U16,
    DTYPE_U32,
    DTYPE_U64,
    DTYPE_BOOL,
    DTYPE_C64,
    DTYPE_C128,
    DTYPE_F8_E5M2, /* from here on in safetensors only */
    DTYPE_F8_E4M3,
    DTYPE_F8_E8M0,
    DTYPE_F8_E5M2FNUZ,
    DTYPE_F8_E4M3FNUZ,
    DTYPE_F4,
    DTYPE_F6_E2M3,
    DTYPE_F6_E3M2,
    DTYPE_COUNT
};

#define DTYPE_OAM_COUNT 15 /* wire values 0 to 14 */

struct dtype_info {
    const char *name;  /* as in safetensors, plus C128 */
    unsigned bits;     /* of one element */
    const char *descr; /* of the .npy view; NULL: the view widens to float32, or there is none */
    bool widens;       /* NumPy lacks the type; the .npy view holds its exact values as float32 */
};

extern const struct dtype_info dtype_table[DTYPE_COUNT];

/* The type of that name (len bytes); -1 when there is none. */
int dtype_find(const char *name, size_t len);

#endif
