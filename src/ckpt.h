/* SPDX-License-Identifier: Apache-2.0 */
/* An open checkpoint: what the layers made of it. Only the wiring (the files of src itself) sees this. */
#ifndef CKPT_H
#define CKPT_H

#include "gpu_files.h"
#include "open.h"
#include "tree/tree.h"
#include "verify/guard.h"
#include "verify/pass.h"

struct ckpt {
    struct opened opened;
    struct guard *guard;
    struct gpu_files *gpu; /* NULL: none was asked for */
    struct tree *tree;
};

#endif
