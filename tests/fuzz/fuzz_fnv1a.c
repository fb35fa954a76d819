/* SPDX-License-Identifier: Apache-2.0 */
/* Every FNV-1a kernel against the plain loop. The first 8 bytes are the start state, the next 2 say where to
 * cut the input in two; the rest, repeated up to a few blocks, is hashed. */
#include "hash/cpu.h"
#include "hash/fnv1a.h"
#include "hash/fnv1a_kernel.h"

#include <stdlib.h>
#include <string.h>

#define ROOM ((size_t)3 * 4096)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t plain(uint64_t h, const uint8_t *at, size_t len) {
    for (size_t i = 0; i < len; i++)
        h = (h ^ at[i]) * FNV1A64_PRIME;
    return h;
}

static void compare(
    const struct fnv1a_kernel *kernel, uint64_t h, const uint8_t *bytes, size_t len, size_t cut) {
    uint64_t want = plain(h, bytes, len);
    if (kernel->run(h, bytes, len) != want)
        abort();
    if (kernel->run(kernel->run(h, bytes, cut), bytes + cut, len - cut) != want)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const limits[] = {"portable", "avx2", "avx512"};
    if (size < 11)
        return 0;
    uint64_t h;
    memcpy(&h, data, 8);
    size_t len = size - 10, times = 1 + data[8] % 8, cut = (size_t)(data[8] << 8 | data[9]);
    times = len * times > ROOM ? 1 : times;
    uint8_t *bytes = malloc(len * times); /* exact, so that AddressSanitizer sees a read past either end */
    if (!bytes)
        return 0;
    for (size_t i = 0; i < times; i++)
        memcpy(bytes + i * len, data + 10, len);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        compare(fnv1a_kernel(cpu_limit(cpu_present(), limits[i])), h, bytes, len * times,
            cut % (len * times + 1));
    free(bytes);
    return 0;
}
