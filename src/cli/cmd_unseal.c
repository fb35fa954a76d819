/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt unseal: the payload of an envelope, verified. */
#include "cli/args.h"
#include "cli/file.h"
#include "cli/out.h"

#include <string.h>

/* Which of the two files the message is about. */
static const char *file_of(const struct ckpt_err *err, const char *from, const char *to) {
    size_t len = strlen(to);
    return !strncmp(err->msg, to, len) && !strncmp(err->msg + len, ": ", 2) ? to : from;
}

static int run(const struct command *self, int argc, char **argv) {
    struct ckpt_pins pins = {0};
    const struct option options[] = {
        {"contract", 0, NULL, &pins.contract}, {"manifest", 0, NULL, &pins.manifest}, {0}};
    const char *operands[2];
    struct watch watch;
    struct ckpt_err err;
    int code = args_parse(self, argc, argv, options, 2, 2, operands);
    if (code)
        return code;
    watch_start(&watch, false);
    const struct ckpt_write_options writing = {.cancel = &watch.cancel, .progress = &watch.progress};
    int rc = file_check(operands[0], &err);
    if (!rc)
        rc = ckpt_unseal(operands[0], &pins, operands[1], &writing, &err);
    watch_stop(&watch);
    return rc ? watch_exit(complain_err(file_of(&err, operands[0], operands[1]), &err)) : EXIT_FINE;
}

const struct command cmd_unseal = {
    .name = "unseal",
    .operands = "[--contract C] [--manifest sha256:HEX] IN OUT",
    .summary = "take the payload out of an envelope, every chunk verified",
    .details =
        "OUT is replaced when the payload is complete, verified and on the disk, or not at all. What an\n"
        "envelope fails is named as 'ckpt verify' names it, with exit status 3.\n\n"
        "  --contract C           the contract (JSON) that the envelope is held against\n"
        "  --manifest sha256:HEX  what the envelope's header must hash to\n",
    .run = run,
};
