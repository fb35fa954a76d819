/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#define LANES 4
#define TARGET
#define KERNEL quantize_portable
#include "pack/quantize_vector.h"
