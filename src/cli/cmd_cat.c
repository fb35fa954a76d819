/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt cat: the bytes of one path of the tree, verified. */
#include "cli/args.h"
#include "cli/file.h"
#include "cli/out.h"

#include <stdlib.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20) /* bytes a read: one block of the guard and more, still small */

/* Copies to stdout; a piece is written only after all of it was verified. */
static int copy(const char *name, struct ckpt_file *file, struct watch *watch, char *piece) {
    struct ckpt_err err;
    uint64_t size = ckpt_file_size(file), at = 0;
    for (size_t len = 1; len; at += len) {
        if (ckpt_file_read(file, at, piece, PIECE, &len, &watch->cancel, &err)) {
            watch_stop(watch);
            return complain_err(name, &err);
        }
        int refused = write_all(piece, len);
        if (refused) {
            watch_stop(watch);
            return watch_exit(0) ? watch_exit(0) : complain_stdout(refused);
        }
        watch_tell(watch, at + len, size);
    }
    return EXIT_FINE;
}

static int open_path(const char *name, struct ckpt *ckpt, const char *path, struct ckpt_file **ret_file) {
    struct ckpt_err err;
    struct ckpt_stat stat;
    int rc = ckpt_resolve(ckpt, path, &stat, &err);
    if (rc == CKPT_E_NOENT || rc == CKPT_E_INVAL) {
        complain(name, "%s: no such path in the tree ('%s ls %s' lists it)", path, PROGRAM, name);
        return EXIT_SYSTEM;
    }
    if (!rc && stat.kind == CKPT_DIR) {
        complain(name, "%s: is a directory", path);
        return EXIT_SYSTEM;
    }
    if (!rc)
        rc = ckpt_file_open(ckpt, stat.ino, ret_file, NULL, &err);
    return rc ? complain_err(name, &err) : EXIT_FINE;
}

static int cat(const char *name, struct ckpt *ckpt, const char *path, struct watch *watch) {
    struct ckpt_file *file;
    int code = open_path(name, ckpt, path, &file);
    if (code)
        return code;
    char *piece = malloc(PIECE);
    if (piece)
        code = copy(name, file, watch, piece);
    else
        complain(name, "no memory");
    free(piece);
    ckpt_file_close(file);
    return piece ? code : EXIT_SYSTEM;
}

static int run(const struct command *self, int argc, char **argv) {
    const struct option options[] = {{0}};
    const char *operands[2];
    struct watch watch;
    struct ckpt *ckpt;
    int code = args_parse(self, argc, argv, options, 2, 2, operands);
    if (code)
        return code;
    watch_start(&watch, isatty(STDOUT_FILENO));
    code = file_open(operands[0], &watch, &ckpt);
    if (code)
        return code;
    code = cat(operands[0], ckpt, operands[1], &watch);
    watch_stop(&watch);
    ckpt_close(ckpt);
    return watch_exit(code);
}

const struct command cmd_cat = {
    .name = "cat",
    .operands = "FILE PATH",
    .summary = "write the bytes of one path of the tree to standard output, verified",
    .details =
        "PATH is as 'ckpt ls' lists it, such as tensors/NAME.npy. The unit that holds a byte is verified\n"
        "before the byte is written; a damaged one gives exit status 3 and no byte of it.\n",
    .run = run,
};
