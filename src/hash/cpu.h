/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this CPU can run. The environment variable CKPTFS_CPU lowers it, so that every kernel can be tried on
 * one machine: "portable" (plain C only), "avx2", "avx512" (no more than that). Unset, empty or unknown: no
 * limit. It changes speed, never results; naming what the CPU lacks does not make it have it.
 */
#ifndef HASH_CPU_H
#define HASH_CPU_H

enum cpu_feature {
    CPU_AVX2 = 1,
    CPU_AVX512 = 2, /* F, BW, DQ, VL, VBMI, VNNI, VPOPCNTDQ, with GFNI and VPCLMULQDQ (Ice Lake, Zen 4) */
};

/* Bits of enum cpu_feature. Both are asked once a process; the environment is not read again. */
unsigned cpu_features(void); /* what the CPU has, within CKPTFS_CPU */
unsigned cpu_present(void);  /* what the CPU has */

/* Those of `present` that `limit` (a value of CKPTFS_CPU, or NULL) allows. */
unsigned cpu_limit(unsigned present, const char *limit);

#endif
