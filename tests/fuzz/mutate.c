/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutator of the targets that read whole checkpoints. A checksum hides a parser from a fuzzer: most
 * inputs are mutated where something is read and then made right again; some are damaged after that, as a
 * disk would do it; some are left as they came out. What is saved is a file that any reader can be given.
 */
#include "repair.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Changes bytes of one part; the rest stays where it is. */
static void mutate_window(uint8_t *data, size_t size, unsigned choice) {
    size_t off, len;
    repair_window(data, size, choice, &off, &len);
    if (len)
        (void)LLVMFuzzerMutate(data + off, len, len);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    unsigned way = seed % 8, choice = seed / 8;
    enum repair_kind kind = repair_kind(data, size);
    if (way == 0 || kind == REPAIR_OTHER)
        return LLVMFuzzerMutate(data, size, max_size);
    if (way == 1) {
        size = repair(data, size, max_size);
        mutate_window(data, size, choice);
        return size;
    }
    if (way == 2 || kind == REPAIR_SAFETENSORS)
        size = LLVMFuzzerMutate(data, size, max_size);
    else
        mutate_window(data, size, choice);
    return repair(data, size, max_size);
}
