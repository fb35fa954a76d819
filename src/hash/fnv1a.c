/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "hash/cpu.h"
#include "hash/fnv1a.h"
#include "hash/fnv1a_kernel.h"
#include "hash/hash_ops.h"

#include <pthread.h>

static uint64_t run(uint64_t h, const void *bytes, size_t len) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ at[i]) * FNV1A64_PRIME;
    return h;
}

const struct fnv1a_kernel fnv1a_portable = {.name = "portable", .run = run};

/* Fastest first; the last needs nothing. */
static const struct fnv1a_kernel *const kernels[] = {
#ifdef HAVE_X86_KERNELS
    &fnv1a_avx512,
    &fnv1a_avx2,
#endif
    &fnv1a_portable,
};

#define SHORT 256 /* no kernel is faster than the plain loop below */

static pthread_once_t prepared = PTHREAD_ONCE_INIT;

static void prepare(void) {
    for (const struct fnv1a_kernel *const *kernel = kernels; (*kernel)->needs; kernel++)
        if (((*kernel)->needs & ~cpu_present()) == 0)
            (*kernel)->prepare();
}

const struct fnv1a_kernel *fnv1a_kernel(unsigned features) {
    const struct fnv1a_kernel *const *kernel = kernels;
    pthread_once(&prepared, prepare);
    while ((*kernel)->needs & ~features)
        kernel++;
    return *kernel;
}

uint64_t fnv1a64(uint64_t h, const void *bytes, size_t len) {
    if (len < SHORT)
        return run(h, bytes, len);
    return fnv1a_kernel(cpu_features())->run(h, bytes, len);
}

static void fnv1a_reset(void *state) {
    *(uint64_t *)state = FNV1A64_START;
}

static int fnv1a_init(void *state, struct ckpt_err *err) {
    (void)err; /* the state is a number: nothing to fail */
    fnv1a_reset(state);
    return 0;
}

static void fnv1a_update(void *state, const void *bytes, size_t len) {
    uint64_t *h = state;
    *h = fnv1a64(*h, bytes, len);
}

static void fnv1a_final(void *state, uint8_t *digest) {
    uint64_t h = *(const uint64_t *)state;
    for (int i = 0; i < 8; i++)
        digest[i] = (uint8_t)(h >> (56 - 8 * i));
}

static void fnv1a_fini(void *state) {
    (void)state;
}

const struct hash_ops hash_ops_fnv1a64 = {
    .state_bytes = sizeof(uint64_t),
    .init = fnv1a_init,
    .reset = fnv1a_reset,
    .update = fnv1a_update,
    .final = fnv1a_final,
    .fini = fnv1a_fini,
};
