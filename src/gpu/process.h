/* SPDX-License-Identifier: Apache-2.0 */
/* The helper's process and our end of the socket to it. Threads: one at a time, but for process_is_gone. */
#ifndef GPU_PROCESS_H
#define GPU_PROCESS_H

#include "base/err.h"

#include <sys/types.h>

struct process {
    pid_t pid; /* 0: none */
    int sock;
};

/* Errors: GPU (ENODEV: there is no such program), IO. */
int process_start(const char *program, struct process *ret_process, struct ckpt_err *err);

/* Whether it has ended, or is about to: it has closed its end. */
bool process_is_gone(const struct process *process);

/* Kills it unless it has ended, reaps it, closes the socket; `how` becomes how it ended ("signal 9"). One
 * that cannot even be killed (the kernel waits for the device) is left behind after a while. */
void process_end(struct process *process, char how[64]);

#endif
