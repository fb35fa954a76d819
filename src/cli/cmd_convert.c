/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt convert: from one format to another. */
#include "cli/args.h"
#include "cli/file.h"
#include "cli/out.h"

struct telling {
    const char *file;
    struct watch *watch;
    bool drop;
    bool told; /* of something that cannot be held */
};

static void tell(void *arg, const char *line) {
    struct telling *telling = arg;
    telling->told = true;
    watch_erase(telling->watch);
    complain(telling->file, "%s%s", telling->drop ? "left out: " : "", line);
}

static int report(const struct telling *telling, const struct ckpt_err *err) {
    if (err->code != CKPT_E_UNSUPPORTED || !telling->told || telling->drop)
        return complain_err(telling->file, err);
    complain(telling->file, "%s; nothing was written (--drop leaves out what cannot be held)", err->msg);
    return EXIT_USAGE;
}

static int run(const struct command *self, int argc, char **argv) {
    bool drop = false;
    const char *files[2];
    struct watch watch;
    struct ckpt_err err;
    const struct option options[] = {{"drop", 0, &drop, NULL}, {0}};
    int code = args_parse(self, argc, argv, options, 2, 2, files);
    if (code)
        return code;
    struct telling telling = {.file = files[0], .watch = &watch, .drop = drop};
    const struct ckpt_convert how = {.drop = drop, .cannot_hold = tell, .arg = &telling};
    watch_start(&watch, false);
    const struct ckpt_write_options writing = {.cancel = &watch.cancel, .progress = &watch.progress};
    int rc = file_check(files[0], &err);
    if (!rc)
        rc = ckpt_convert(files[0], files[1], &how, &writing, &err);
    watch_stop(&watch);
    return rc ? watch_exit(report(&telling, &err)) : EXIT_FINE;
}

const struct command cmd_convert = {
    .name = "convert",
    .operands = "[--drop] IN OUT.{oam,safetensors}",
    .summary = "write a checkpoint in another format",
    .details =
        "IN is anything that can be opened. OUT's ending says what is written: an .oam, or one safetensors\n"
        "file (of a sharded set, too). It is replaced when it is complete and on the disk, or not at all.\n"
        "What OUT cannot hold is listed, each with the reason, and nothing is written (exit status 1).\n\n"
        "  --drop  leave out what OUT cannot hold, and list it\n",
    .run = run,
};
