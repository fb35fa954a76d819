/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu/, as the tree sees it: somebody else's device, told through a handful of calls. The tree knows which
 * files there are and what is open; what they say is made when they are opened, and stays until they are
 * closed. Threads: every call from any thread.
 */
#ifndef TREE_DEVICE_H
#define TREE_DEVICE_H

#include "catalog/catalog.h"

struct tree_device {
    void *arg; /* of every call; outlives the tree */
    /* Whether the weight tensor gets a file. Asked while the tree is made. */
    bool (*selects)(void *arg, const struct tensor *tensor);
    /* The text of gpu/device.json, freed with free(). */
    int (*describe)(void *arg, const struct ckpt_cancel *cancel, char **ret_text, struct ckpt_err *err);
    /* Puts the tensor onto the device and tells where it is (freed with free()); *ret_hold keeps it there
     * until let_go. Errors: those of guard_read, GPU, INTR. */
    int (*load)(void *arg, const struct tensor *tensor, const struct ckpt_cancel *cancel, char **ret_text,
        void **ret_hold, struct ckpt_err *err);
    /* Does not wait for what goes on elsewhere. */
    void (*let_go)(void *arg, void *hold);
};

#endif
