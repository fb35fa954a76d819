/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt quantize: an .oam's weights in blocks of 4 or 8 bits. */
#include "cli/args.h"
#include "cli/file.h"
#include "cli/out.h"

#include <string.h>

static int quantize(enum ckpt_quantization kind, const char *from, const char *to, bool quiet) {
    struct watch watch;
    struct ckpt_err err;
    watch_start(&watch, quiet);
    const struct ckpt_write_options how = {.cancel = &watch.cancel, .progress = &watch.progress};
    int rc = file_check(from, &err);
    if (!rc)
        rc = ckpt_quantize(from, kind, to, &how, &err);
    watch_stop(&watch);
    return rc ? watch_exit(complain_err(from, &err)) : EXIT_FINE;
}

static int run(const struct command *self, int argc, char **argv) {
    bool quiet = false;
    const struct option options[] = {{"quiet", 'q', &quiet, NULL}, {0}};
    const char *operands[3];
    int code = args_parse(self, argc, argv, options, 3, 3, operands);
    if (code)
        return code;
    if (!strcmp(operands[0], "q4"))
        return quantize(CKPT_Q4, operands[1], operands[2], quiet);
    if (!strcmp(operands[0], "q8"))
        return quantize(CKPT_Q8, operands[1], operands[2], quiet);
    return args_wrong(self, "'%s' is neither q4 nor q8", operands[0]);
}

const struct command cmd_quantize = {
    .name = "quantize",
    .operands = "[-q] q4|q8 FILE OUT",
    .summary = "write a copy of an .oam with its weights in 4 or 8 bits",
    .details =
        "Float32 weights of rank 2 and more are quantized in blocks of 32 values with one scale each; the other\n"
        "weights and the state stay as they are, and the optimizer is left out. FILE is an .oam or an envelope\n"
        "around one, and verified. Refused (exit status 1): any other format, a weight of rank 2 and more that is\n"
        "not float32, or is quantized already, and a model without a weight to quantize.\n\n"
        "  -q, --quiet  no progress\n",
    .run = run,
};
