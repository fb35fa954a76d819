/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt ls: the tree or a part of it, one path a line. */
#include "cli/args.h"
#include "cli/file.h"
#include "cli/out.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH_MAX 16 /* the tree has 3 levels */
#define PATH_BYTES ((CKPT_NAME_MAX + 1) * DEPTH_MAX)

struct ls {
    struct ckpt *ckpt;
    const char *glob; /* NULL: everything */
    bool details, json;
    int width;     /* of the size column */
    char when[32]; /* the source's time, which is that of every path */
    uint64_t shown;
};

/* A directory on the way down. */
struct level {
    uint64_t ino, index;
    size_t path_len; /* of the path of the directory, with its slash */
};

struct walk {
    struct level levels[DEPTH_MAX];
    size_t depth;
    char path[PATH_BYTES];
};

/* ---- one path ---------------------------------------------------------------------------------------- */

static void show_json(const struct ls *ls, const char *path, const struct ckpt_stat *stat) {
    fputs(ls->shown ? ",\n  {\"path\": " : "\n  {\"path\": ", stdout);
    put_json_string(stdout, path);
    printf(", \"kind\": \"%s\", \"size\": %" PRIu64 "}", stat->kind == CKPT_DIR ? "dir" : "file", stat->size);
}

static void show_line(const struct ls *ls, const char *path, const struct ckpt_stat *stat) {
    bool dir = stat->kind == CKPT_DIR;
    if (ls->details)
        printf("%s %*" PRIu64 " %s ", dir ? "dr-xr-xr-x" : "-r--r--r--", ls->width, stat->size, ls->when);
    put_name(stdout, path);
    fputs(dir ? "/\n" : "\n", stdout);
}

/* FNM_PATHNAME stays off, so that "*.npy" finds the arrays of all directories. */
static void show(struct ls *ls, const char *path, const struct ckpt_stat *stat) {
    if (ls->glob && fnmatch(ls->glob, path, 0) != 0)
        return;
    if (ls->json)
        show_json(ls, path, stat);
    else
        show_line(ls, path, stat);
    ls->shown++;
}

/* ---- the walk ---------------------------------------------------------------------------------------- */

static void enter(struct walk *walk, uint64_t ino, size_t path_len) {
    walk->levels[walk->depth++] = (struct level){.ino = ino, .path_len = path_len};
}

/* Shows the next entry of the deepest level, and goes down into it when it is a directory. */
static int step(struct ls *ls, struct walk *walk, struct ckpt_err *err) {
    struct level *level = &walk->levels[walk->depth - 1];
    struct ckpt_dirent entry;
    int rc = ckpt_entry(ls->ckpt, level->ino, level->index++, &entry, err);
    if (rc == CKPT_E_NOENT) {
        walk->depth--;
        return 0;
    }
    if (rc)
        return rc;
    char *end = walk->path + level->path_len;
    size_t len = strlen(entry.name);
    memcpy(end, entry.name, len + 1);
    show(ls, walk->path, &entry.stat);
    if (entry.stat.kind == CKPT_DIR && walk->depth < DEPTH_MAX) {
        memcpy(end + len, "/", 2);
        enter(walk, entry.stat.ino, level->path_len + len + 1);
    }
    return 0;
}

/* All below directory `ino`, whose path (empty for the root) has no slash at its end. */
static int show_below(struct ls *ls, uint64_t ino, const char *path, struct ckpt_err *err) {
    struct walk walk = {.depth = 0};
    size_t len = strlen(path);
    if (len > PATH_BYTES / 2)
        return 0; /* longer than any path that exists */
    memcpy(walk.path, path, len);
    if (len)
        walk.path[len++] = '/';
    enter(&walk, ino, len);
    int rc = 0;
    while (!rc && walk.depth)
        rc = step(ls, &walk, err);
    return rc;
}

/* A GLOB that is a path means that path: names may hold '[' and '*'. A directory stands for its content. */
static int list(struct ls *ls, char *glob, struct ckpt_err *err) {
    struct ckpt_stat stat;
    size_t len = strlen(glob);
    while (len && glob[len - 1] == '/')
        glob[--len] = '\0';
    if (ckpt_resolve(ls->ckpt, glob, &stat, err)) {
        ls->glob = glob;
        return show_below(ls, 1, "", err);
    }
    if (stat.kind == CKPT_DIR)
        return show_below(ls, stat.ino, glob, err);
    show(ls, glob, &stat);
    return 0;
}

/* ---- the command ------------------------------------------------------------------------------------- */

static void prepare_columns(struct ls *ls) {
    struct ckpt_source_info source;
    struct tm tm;
    ckpt_source(ls->ckpt, &source);
    time_t when = (time_t)source.mtime_sec;
    if (!localtime_r(&when, &tm) || !strftime(ls->when, sizeof ls->when, "%Y-%m-%d %H:%M", &tm))
        memcpy(ls->when, "?", 2);
    /* widened Q4 is nearly 8 times what is stored: one digit more is enough for every path */
    ls->width = 1 + snprintf(NULL, 0, "%" PRIu64, source.bytes);
}

static int print_all(struct ls *ls, const char *file, const char *glob) {
    struct ckpt_err err;
    char *copy = strdup(glob + strspn(glob, "/"));
    if (!copy) {
        complain(file, "no memory");
        return EXIT_SYSTEM;
    }
    prepare_columns(ls);
    if (ls->json)
        putchar('[');
    int rc = list(ls, copy, &err);
    if (ls->json)
        fputs(ls->shown ? "\n]\n" : "]\n", stdout);
    free(copy);
    if (rc)
        return complain_err(file, &err);
    if (*glob && !ls->shown) {
        complain(file, "no path matches '%s'", glob);
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

static int run(const struct command *self, int argc, char **argv) {
    struct ls ls = {0};
    const struct option options[] = {{"long", 'l', &ls.details, NULL}, {"json", 0, &ls.json, NULL}, {0}};
    const char *operands[2];
    int code = args_parse(self, argc, argv, options, 1, 2, operands);
    if (code)
        return code;
    code = file_open(operands[0], NULL, &ls.ckpt);
    if (code)
        return code;
    code = print_all(&ls, operands[0], operands[1] ? operands[1] : "");
    ckpt_close(ls.ckpt);
    return code;
}

const struct command cmd_ls = {
    .name = "ls",
    .operands = "[-l] [--json] FILE [GLOB]",
    .summary = "list the tree, or its part, as a mount would show it",
    .details =
        "One path a line, directories with a slash at their end and followed by what they hold.\n"
        "GLOB is a path of the tree (of a directory: what it holds), or a shell pattern for the whole path,\n"
        "where '*' matches slashes too: '*.npy' finds the arrays of all directories.\n\n"
        "  -l, --long  mode, size in bytes (of a directory: its number of entries), time, path\n"
        "  --json      an array of {\"path\", \"kind\", \"size\"}; kind is \"file\" or \"dir\"\n",
    .run = run,
};
