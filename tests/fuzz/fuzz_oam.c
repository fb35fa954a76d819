/* SPDX-License-Identifier: Apache-2.0 */
/* The .oam reader, strict and lazy. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)fuzz_format(&format_oam, data, size);
    return 0;
}
