/* SPDX-License-Identifier: Apache-2.0 */
/* struct ckpt_gpu_options' fields of which zero stands for a default. Pure. */
#ifndef GPU_OPTIONS_H
#define GPU_OPTIONS_H

#include <limits.h>

static inline const char *gpu_text_or(const char *text, const char *fallback) {
    return text && *text ? text : fallback;
}

/* At most INT_MAX, which is 24 days. */
static inline int gpu_milliseconds(unsigned seconds, int fallback) {
    if (!seconds)
        return fallback;
    return seconds > INT_MAX / 1000 ? INT_MAX : (int)seconds * 1000;
}

#endif
