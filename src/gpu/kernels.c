/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/kernels.h"

#ifdef HAVE_NVCC

/* The assembler copies the files, which make puts below the build folder, into this object. */
#define EMBED(symbol, file)                                                                                  \
    extern const char symbol[];                                                                              \
    __asm__(".pushsection .rodata\n.balign 16\n.global " #symbol "\n.hidden " #symbol "\n" #symbol           \
            ":\n.incbin \"" file "\"\n.byte 0\n.popsection\n")

EMBED(gpu_kernels_fatbin, "src/gpu/kernels.fatbin");
EMBED(gpu_kernels_ptx, "src/gpu/kernels.ptx");

/* A driver older than the toolkit may refuse the fat binary; it compiles the PTX, which is of an old version.
 */
static const struct kernel_image images[] = {{"fat binary", gpu_kernels_fatbin}, {"PTX", gpu_kernels_ptx}};

const struct kernel_image *kernel_images(size_t *ret_count) {
    *ret_count = sizeof images / sizeof *images;
    return images;
}

#else

const struct kernel_image *kernel_images(size_t *ret_count) {
    *ret_count = 0;
    return NULL;
}

#endif
