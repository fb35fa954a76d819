/* SPDX-License-Identifier: Apache-2.0 */
/* Options and operands of a command line. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "cli/cli.h"

/* An option: with `value` it takes an argument ("--name ARG", "--name=ARG", "-xARG"), with `on` it takes
 * none. */
struct option {
    const char *name;
    char letter; /* 0: none */
    bool *on;
    const char **value;
};

/*
 * Takes the options out of argv[1..argc), wherever they stand, up to "--", and leaves the operands in
 * operands[0..max), NULL where there are none. options ends with a row without a name. Returns EXIT_FINE, or
 * EXIT_USAGE after it has said what is wrong.
 */
int args_parse(const struct command *self, int argc, char **argv, const struct option *options, int min,
    int max, const char **operands);

/* Says what is wrong, and the synopsis; returns EXIT_USAGE. */
int args_wrong(const struct command *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
