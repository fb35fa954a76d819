/* SPDX-License-Identifier: Apache-2.0 */
/* The desk's socket and its directory. */
#ifndef GPU_DESK_PLACE_H
#define GPU_DESK_PLACE_H

#include "base/err.h"

#define DESK_PATH_MAX 108 /* sockaddr_un */

struct desk_place {
    char dir[DESK_PATH_MAX], path[DESK_PATH_MAX];
    int listener; /* nonblocking */
};

/* See desk_new. Errors: IO. */
int desk_place_make(const char *base, struct desk_place *ret_place, struct ckpt_err *err);
void desk_place_remove(struct desk_place *place);

#endif
