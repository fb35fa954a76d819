/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUSE_MEMORY_H
#define FUSE_MEMORY_H

#include <stdint.h>

/* The smallest limit of the control groups (v2 or v1) that this process is in; UINT64_MAX: none is known. */
uint64_t memory_limit(void);

#endif
