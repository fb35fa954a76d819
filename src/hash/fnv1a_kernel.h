/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels behind fnv1a64, for the choice among them, for tests and for benchmarks. All give the same
 * digest. */
#ifndef HASH_FNV1A_KERNEL_H
#define HASH_FNV1A_KERNEL_H

#include <stddef.h>
#include <stdint.h>

struct fnv1a_kernel {
    const char *name;      /* as CKPTFS_CPU says it */
    unsigned needs;        /* bits of enum cpu_feature */
    void (*prepare)(void); /* fills constant tables; NULL: none */
    uint64_t (*run)(uint64_t h, const void *bytes, size_t len);
};

/* The fastest kernel that needs no more than `features`; never NULL. Tables are ready when it returns. */
const struct fnv1a_kernel *fnv1a_kernel(unsigned features);

extern const struct fnv1a_kernel fnv1a_portable;
extern const struct fnv1a_kernel fnv1a_avx2; /* these two only where config.h has HAVE_X86_KERNELS */
extern const struct fnv1a_kernel fnv1a_avx512;

#endif
