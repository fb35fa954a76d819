/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/float_text.h"

#include <ckptfs.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int float_of_number(const char *text, size_t len, uint32_t *ret_bits) {
    float value = 0;
    char *copy = strndup(text, len);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    int rc = copy && plain ? 0 : CKPT_E_NOMEM;
    if (!rc)
        value = strtof_l(copy, NULL, plain);
    if (plain)
        freelocale(plain);
    free(copy);
    if (rc || !isfinite(value))
        return rc ? rc : CKPT_E_INVAL;
    memcpy(ret_bits, &value, sizeof *ret_bits);
    return 0;
}

bool float_of_name(const char *text, size_t len, uint32_t *ret_bits) {
    static const struct {
        const char *name;
        uint32_t bits;
    } names[] = {
        {"NaN", FLOAT_NAN},
        {"nan", FLOAT_NAN},
        {"Infinity", 0x7f800000},
        {"inf", 0x7f800000},
        {"-Infinity", 0xff800000},
        {"-inf", 0xff800000},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == len && !memcmp(names[i].name, text, len)) {
            *ret_bits = names[i].bits;
            return true;
        }
    return false;
}
