/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt pack: a description or a directory to an .oam. */
#include "cli/args.h"
#include "cli/out.h"
#include "cli/watch.h"

static int run(const struct command *self, int argc, char **argv) {
    bool quiet = false;
    const struct option options[] = {{"quiet", 'q', &quiet, NULL}, {0}};
    const char *operands[2];
    struct watch watch;
    struct ckpt_err err;
    int code = args_parse(self, argc, argv, options, 2, 2, operands);
    if (code)
        return code;
    watch_start(&watch, quiet);
    const struct ckpt_write_options how = {.cancel = &watch.cancel, .progress = &watch.progress};
    int rc = ckpt_pack(operands[0], operands[1], &how, &err);
    watch_stop(&watch);
    return rc ? watch_exit(complain_err(operands[0], &err)) : EXIT_FINE;
}

const struct command cmd_pack = {
    .name = "pack",
    .operands = "[-q] FROM OUT",
    .summary = "make an .oam of a description or of an extracted tree",
    .details =
        "FROM is a description in JSON, which names the files that hold the tensors' bytes (doc/pack.md), or a\n"
        "directory as 'ckpt extract' writes it from an .oam, which may have been changed since. A tensor is there\n"
        "twice, below raw/ and as an .npy: to change it, delete the file that is not meant; as long as both are\n"
        "there they must agree. OUT is replaced when the checkpoint is complete and on the disk, or not at all.\n"
        "Exit status 1 when FROM does not describe what an .oam can hold.\n\n"
        "  -q, --quiet  no progress\n",
    .run = run,
};
