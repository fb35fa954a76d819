/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#ifdef HAVE_X86_KERNELS
#define LANES 8
#define TARGET __attribute__((target("avx2")))
#define KERNEL quantize_avx2
#include "pack/quantize_vector.h"
#endif
