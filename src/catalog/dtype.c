/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/dtype.h"

#include <string.h>

const struct dtype_info dtype_table[DTYPE_COUNT] = {
    [DTYPE_F32] = {"F32", 32, "<f4", false},
    [DTYPE_BF16] = {"BF16", 16, NULL, true},
    [DTYPE_F16] = {"F16", 16, "<f2", false},
    [DTYPE_I8] = {"I8", 8, "|i1", false},
    [DTYPE_I32] = {"I32", 32, "<i4", false},
    [DTYPE_U8] = {"U8", 8, "|u1", false},
    [DTYPE_F64] = {"F64", 64, "<f8", false},
    [DTYPE_I16] = {"I16", 16, "<i2", false},
    [DTYPE_I64] = {"I64", 64, "<i8", false},
    [DTYPE_U16] = {"U16", 16, "<u2", false},
    [DTYPE_U32] = {"U32", 32, "<u4", false},
    [DTYPE_U64] = {"U64", 64, "<u8", false},
    [DTYPE_BOOL] = {"BOOL", 8, "|b1", false},
    [DTYPE_C64] = {"C64", 64, "<c8", false},
    [DTYPE_C128] = {"C128", 128, "<c16", false},
    [DTYPE_F8_E5M2] = {"F8_E5M2", 8, NULL, true},
    [DTYPE_F8_E4M3] = {"F8_E4M3", 8, NULL, true},
    [DTYPE_F8_E8M0] = {"F8_E8M0", 8, NULL, true},
    [DTYPE_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8, NULL, true},
    [DTYPE_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8, NULL, true},
    [DTYPE_F4] = {"F4", 4, NULL, false},
    [DTYPE_F6_E2M3] = {"F6_E2M3", 6, NULL, false},
    [DTYPE_F6_E3M2] = {"F6_E3M2", 6, NULL, false},
};

int dtype_find(const char *name, size_t len) {
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (strlen(dtype_table[i].name) == len && !memcmp(dtype_table[i].name, name, len))
            return i;
    return -1;
}
