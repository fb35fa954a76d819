/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels make of stored bytes, made by the same arithmetic on the CPU:
 *
 *   convert KERNEL TO COUNT <stored >converted     KERNEL: ckpt_bf16, ...; TO: an enum convert_to
 */
#include "gpu/convert.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {
#define NAME(kind, name) #name,
    CONVERT_KINDS(NAME)};

static enum convert_kind kind_of(const char *name) {
    for (int i = 0; i < CONVERT_COUNT; i++)
        if (!strcmp(names[i], name))
            return (enum convert_kind)i;
    fprintf(stderr, "convert: no kernel %s\n", name);
    exit(EXIT_FAILURE);
}

/* Bytes of the blocks that stand before the scales. */
static uint64_t scales_at(enum convert_kind kind, uint64_t count) {
    uint64_t blocks = (count + CONVERT_BLOCK - 1) / CONVERT_BLOCK;
    return blocks * (kind == CONVERT_Q4 ? CONVERT_BLOCK / 2 : CONVERT_BLOCK);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "convert KERNEL TO COUNT <stored >converted\n");
        return EXIT_FAILURE;
    }
    enum convert_kind kind = kind_of(argv[1]);
    enum convert_to to = (enum convert_to)atoi(argv[2]);
    uint64_t count = strtoull(argv[3], NULL, 10), size = to == CONVERT_TO_F32 ? 4 : 2;
    uint8_t *stored = calloc(count + CONVERT_BLOCK, 8), *converted = calloc(count + 1, 4);
    if (!stored || !converted)
        return EXIT_FAILURE;
    (void)!fread(stored, 1, (count + CONVERT_BLOCK) * 8, stdin);
    const void *scales = stored + (kind == CONVERT_Q4 || kind == CONVERT_Q8 ? scales_at(kind, count) : 0);
    for (uint64_t i = 0; i < count; i++)
        convert_store(to, converted, i, convert_value(kind, stored, scales, i));
    bool written = fwrite(converted, size, count, stdout) == count && fflush(stdout) == 0;
    free(stored);
    free(converted);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}
