/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of ckpt: one file and one row of the table in main.c each. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <ckptfs.h>

#define PROGRAM "ckpt"
#define EXIT_SIGNAL 128 /* plus the signal's number, as a shell reports it */

enum exit_code {
    EXIT_FINE = 0,
    EXIT_USAGE = 1,   /* wrong use */
    EXIT_SYSTEM = 2,  /* the system refused: no file, no permission, disk full */
    EXIT_CORRUPT = 3, /* corrupt, foreign, or not the pinned one */
};

struct command {
    const char *name;
    const char *operands; /* of the synopsis: "[-l] [--json] FILE [GLOB]" */
    const char *summary;  /* one line, for the list of commands */
    const char *details;  /* the rest of its help, one or more lines */
    /* argv[0] is the command's name. Returns the exit code; what it wrote to stdout is flushed by main. */
    int (*run)(const struct command *self, int argc, char **argv);
};

extern const struct command cmd_info, cmd_ls, cmd_cat, cmd_extract, cmd_diff, cmd_verify;
extern const struct command cmd_seal, cmd_unseal, cmd_pack, cmd_quantize;
extern const struct command cmd_convert;

#endif
