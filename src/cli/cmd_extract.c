/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt extract: the tree, or its part, as plain files. */
#include "cli/args.h"
#include "cli/file.h"
#include "cli/out.h"

#include <inttypes.h>
#include <stdlib.h>

struct outlet {
    const char *file;
    struct watch *watch;
};

static void say_left_out(void *arg, const char *path, const struct ckpt_err *err) {
    const struct outlet *outlet = arg;
    watch_erase(outlet->watch);
    complain(outlet->file, "left out: %s: %s", path, err->msg);
}

static int extract(
    struct ckpt *ckpt, const struct outlet *outlet, const char *dir, struct ckpt_extract_options *how) {
    const struct ckpt_write_options options = {&outlet->watch->cancel, &outlet->watch->progress};
    struct ckpt_err err;
    uint64_t left_out = 0;
    how->left_out = say_left_out;
    how->arg = (void *)(uintptr_t)outlet;
    int rc = ckpt_extract(ckpt, dir, how, &options, &left_out, &err);
    watch_stop(outlet->watch);
    if (rc)
        return watch_exit(complain_err(outlet->file, &err));
    if (!left_out)
        return EXIT_FINE;
    complain(outlet->file, "%" PRIu64 " file%s left out of %s", left_out, left_out == 1 ? "" : "s", dir);
    return EXIT_CORRUPT;
}

static int open_and_extract(const char **operands, struct ckpt_extract_options *how) {
    struct watch watch;
    struct ckpt *ckpt;
    watch_start(&watch, false);
    int code = file_open(operands[0], &watch, &ckpt);
    if (code)
        return code;
    const struct outlet outlet = {operands[0], &watch};
    code = extract(ckpt, &outlet, operands[1], how);
    ckpt_close(ckpt);
    return code;
}

static int run(const struct command *self, int argc, char **argv) {
    struct ckpt_extract_options how = {0};
    const struct option options[] = {{"keep-going", 'k', &how.keep_going, NULL}, {0}};
    const char **operands = calloc((size_t)argc + 1, sizeof *operands);
    if (!operands) {
        complain(NULL, "no memory");
        return EXIT_SYSTEM;
    }
    int code = args_parse(self, argc, argv, options, 2, argc, operands);
    while (!code && operands[2 + how.glob_count])
        how.glob_count++;
    how.globs = operands + 2;
    if (!code)
        code = open_and_extract(operands, &how);
    free(operands);
    return code;
}

const struct command cmd_extract = {
    .name = "extract",
    .operands = "[-k] FILE DIR [GLOB...]",
    .summary = "write the tree, or its part, into a directory as plain files",
    .details =
        "DIR must be new or empty. It appears when everything is written and on the disk, or not at all. Each\n"
        "GLOB is a path of the tree (of a directory: all that it holds), or a shell pattern for whole paths,\n"
        "where '*' matches slashes too. Without one everything is written, and most bytes twice or more, as\n"
        "arrays, as stored bytes and as sections: 'tensors/*' and '*.json' may be all that is wanted.\n\n"
        "  -k, --keep-going  leave out the files that are damaged, name them, and exit with status 3;\n"
        "                    without it the first of them ends the work and nothing is written\n",
    .run = run,
};
