/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels, as the toolkit compiled them into this program; without the toolkit there are none. */
#ifndef GPU_KERNELS_H
#define GPU_KERNELS_H

#include <stddef.h>

struct kernel_image {
    const char *what;
    const void *bytes;
};

/* Images to try in turn, the best first; *ret_count is 0 in a build without the CUDA Toolkit. */
const struct kernel_image *kernel_images(size_t *ret_count);

#endif
