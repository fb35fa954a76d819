/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "hash/cpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned present, allowed; /* written by `once` alone */

unsigned cpu_limit(unsigned found, const char *limit) {
    static const struct {
        const char *name;
        unsigned features;
    } limits[] = {{"portable", 0}, {"avx2", CPU_AVX2}, {"avx512", CPU_AVX2 | CPU_AVX512}};
    for (size_t i = 0; limit && i < sizeof limits / sizeof *limits; i++)
        if (strcmp(limit, limits[i].name) == 0)
            return found & limits[i].features;
    return found;
}

#ifdef HAVE_X86_KERNELS
static unsigned detect(void) {
    __builtin_cpu_init();
    unsigned found = 0;
    if (__builtin_cpu_supports("avx2"))
        found |= CPU_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") &&
        __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("gfni") &&
        __builtin_cpu_supports("vpclmulqdq"))
        found |= CPU_AVX512;
    return found;
}
#else
static unsigned detect(void) {
    return 0;
}
#endif

static void ask(void) {
    present = detect();
    allowed = cpu_limit(present, getenv("CKPTFS_CPU"));
}

unsigned cpu_features(void) {
    pthread_once(&once, ask);
    return allowed;
}

unsigned cpu_present(void) {
    pthread_once(&once, ask);
    return present;
}
