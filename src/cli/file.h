/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint that a command is about. */
#ifndef CLI_FILE_H
#define CLI_FILE_H

#include "cli/watch.h"

/* IO when the system has something else than a regular file there; whatever open(2) refuses is left to it. */
int file_check(const char *file, struct ckpt_err *err);

/* Opens it: EXIT_FINE and *ret_ckpt, or another exit code after it has said what is wrong.
 * watch NULL: a signal simply ends the program. */
int file_open(const char *file, const struct watch *watch, struct ckpt **ret_ckpt);

#endif
