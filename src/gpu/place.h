/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of gpu/ say, as JSON; freed with free(), NULL when there is no memory. */
#ifndef GPU_PLACE_H
#define GPU_PLACE_H

#include "gpu/client.h"

/* gpu/tensors/NAME.json */
char *place_text(const struct gpu_place *place);
/* gpu/device.json */
char *facts_text(const struct gpu_facts *facts);

#endif
