/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt info: what a checkpoint is. All facts come from ckpt_info_json; whatever is missing there is left out.
 */
#include "cli/args.h"
#include "cli/doc.h"
#include "cli/file.h"
#include "cli/out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 160 /* characters of a text from the file that are shown */

/* ---- pieces of a line -------------------------------------------------------------------------------- */

static void label(const char *name) {
    printf("%-14s", name);
}

/* A list on one line: each item calls this first. */
static void comma(bool *begun) {
    fputs(*begun ? ", " : "", stdout);
    *begun = true;
}

/* "name VALUE" for a member that is there. */
static void fact(struct doc object, const char *key, const char *name, bool *begun) {
    struct doc value = doc_get(object, key);
    if (!value.len)
        return;
    comma(begun);
    printf("%s ", name);
    doc_put(stdout, value, TEXT_MAX);
}

/* "1,234 names" */
static void counted(struct doc object, const char *key, const char *singular, bool *begun) {
    char text[COUNT_MAX];
    uint64_t count;
    if (!doc_u64(doc_get(object, key), &count))
        return;
    comma(begun);
    printf("%s %s%s", count_text(count, text), singular, count == 1 ? "" : "s");
}

static void size(struct doc object, const char *key, bool *begun) {
    char text[COUNT_MAX];
    uint64_t bytes;
    if (!doc_u64(doc_get(object, key), &bytes))
        return;
    comma(begun);
    fputs(bytes_text(bytes, text), stdout);
    if (bytes >= 1000)
        printf(" (%s bytes)", count_text(bytes, text));
}

/* ---- lines ------------------------------------------------------------------------------------------- */

static void line_format(struct doc info) {
    label("format");
    doc_put(stdout, doc_get(info, "format"), TEXT_MAX);
    bool begun = false;
    if (doc_get(info, "version").len)
        fact(info, "version", " version", &begun);
    struct doc shards = doc_get(info, "shards");
    if (shards.len)
        printf(", %" PRIu64 " shards", doc_count(shards));
    fputs(doc_is_true(doc_get(info, "enveloped")) ? ", in an envelope\n" : "\n", stdout);
}

static void line_size(struct doc info) {
    bool begun = false;
    label("size");
    size(info, "bytes", &begun);
    putchar('\n');
}

static void line_config(struct doc config) {
    bool begun = false;
    if (!doc_is_object(config))
        return;
    label("architecture");
    struct doc name = doc_get(config, "architecture");
    if (name.len > 2) {
        comma(&begun);
        doc_put(stdout, name, TEXT_MAX);
    }
    fact(config, "d_model", "width", &begun);
    fact(config, "n_layers", "layers", &begun);
    fact(config, "d_vocab", "vocabulary", &begun);
    fact(config, "config_version", "config version", &begun);
    putchar('\n');
    struct doc arch = doc_get(config, "arch_config");
    if (!arch.len)
        return;
    label("");
    doc_put(stdout, arch, TEXT_MAX);
    putchar('\n');
}

static void line_group(const char *name, struct doc group) {
    uint64_t count = 0;
    bool begun = false;
    bool damaged = doc_is_true(doc_get(group, "damaged"));
    doc_u64(doc_get(group, "count"), &count);
    if (!count && !damaged && strcmp(name, "tensors") != 0)
        return;
    label(name);
    if (damaged)
        fputs("damaged: the index cannot be read", stdout);
    else {
        counted(group, "count", "tensor", &begun);
        counted(group, "parameters", "parameter", &begun);
        size(group, "bytes", &begun);
    }
    putchar('\n');
}

static void line_optimizer(struct doc optimizer) {
    bool begun = false;
    if (!doc_is_object(optimizer))
        return;
    label("optimizer");
    doc_put(stdout, doc_get(optimizer, "kind"), TEXT_MAX);
    begun = true;
    fact(optimizer, "step", "step", &begun);
    fact(optimizer, "learning_rate", "learning rate", &begun);
    fact(optimizer, "beta1", "beta1", &begun);
    fact(optimizer, "beta2", "beta2", &begun);
    fact(optimizer, "epsilon", "epsilon", &begun);
    fact(optimizer, "weight_decay", "weight decay", &begun);
    counted(optimizer, "parameters", "parameter", &begun);
    putchar('\n');
}

static void line_progress(struct doc progress) {
    bool begun = false;
    if (!doc_is_object(progress))
        return;
    label("progress");
    fact(progress, "phase", "phase", &begun);
    fact(progress, "step", "step", &begun);
    counted(progress, "bytes_seen", "byte", &begun);
    fputs(doc_get(progress, "bytes_seen").len ? " seen" : "", stdout);
    counted(progress, "env_steps", "environment step", &begun);
    fact(progress, "learning_rate", "learning rate", &begun);
    putchar('\n');
    label("best metric");
    doc_put(stdout, doc_get(progress, "metric_name"), TEXT_MAX);
    putchar(' ');
    doc_put(stdout, doc_get(progress, "best_metric"), TEXT_MAX);
    printf(" (%s is better)\n", doc_is_true(doc_get(progress, "lower_is_better")) ? "lower" : "higher");
}

static void line_envelope(struct doc envelope) {
    static const char *const identities[] = {"schema", "learner", "data", "seed"};
    bool begun = false;
    if (!doc_is_object(envelope))
        return;
    label("envelope");
    fact(envelope, "version", "version", &begun);
    counted(envelope, "chunk_count", "chunk", &begun);
    counted(envelope, "updates", "update", &begun);
    counted(envelope, "invocations", "invocation", &begun);
    putchar('\n');
    for (size_t i = 0; i < sizeof identities / sizeof *identities; i++) {
        label(i ? "" : "identities");
        printf("%-8s", identities[i]);
        doc_put(stdout, doc_get(doc_get(envelope, "identity"), identities[i]), TEXT_MAX);
        putchar('\n');
    }
    label("manifest");
    fputs("sha256:", stdout);
    doc_put(stdout, doc_get(envelope, "manifest_sha256"), TEXT_MAX);
    putchar('\n');
}

static void line_verification(struct doc verification) {
    bool begun = false;
    if (!doc_is_object(verification))
        return;
    label("verification");
    doc_put(stdout, doc_get(verification, "strength"), TEXT_MAX);
    begun = true;
    counted(verification, "units", "unit", &begun);
    fact(verification, "protects_against", "protects against", &begun);
    putchar('\n');
}

/* ---- tables ------------------------------------------------------------------------------------------ */

static void table_dtypes(struct doc group) {
    struct doc types = doc_get(group, "by_dtype"), name, row;
    struct doc_walk walk = {0};
    char text[3][COUNT_MAX];
    if (!doc_count(types))
        return;
    printf("\n%-12s%12s%20s%12s\n", "dtype", "tensors", "parameters", "bytes");
    while (doc_next(types, &walk, &name, &row)) {
        uint64_t value[3] = {0};
        doc_u64(doc_get(row, "tensors"), &value[0]);
        doc_u64(doc_get(row, "parameters"), &value[1]);
        doc_u64(doc_get(row, "bytes"), &value[2]);
        printf("%-12.*s%12s%20s%12s\n", (int)name.len - 2, name.at + 1, count_text(value[0], text[0]),
            count_text(value[1], text[1]), bytes_text(value[2], text[2]));
    }
}

static void table_sections(struct doc sections) {
    struct doc_walk walk = {0};
    struct doc key, row;
    char text[COUNT_MAX];
    if (!doc_count(sections))
        return;
    printf("\n%-20s%24s%12s\n", "section", "offset", "bytes");
    while (doc_next(sections, &walk, &key, &row)) {
        struct doc kind = doc_get(row, "kind");
        uint64_t offset = 0, bytes = 0;
        doc_u64(doc_get(row, "offset"), &offset);
        doc_u64(doc_get(row, "size"), &bytes);
        printf("%-20.*s%24s%12s\n", kind.len ? (int)kind.len - 2 : 0, kind.at + 1, count_text(offset, text),
            bytes_text(bytes, (char[COUNT_MAX]){0}));
    }
}

static void table_metadata(struct doc metadata) {
    struct doc_walk walk = {0};
    struct doc key, value;
    if (!doc_count(metadata))
        return;
    puts("\nmetadata");
    while (doc_next(metadata, &walk, &key, &value)) {
        fputs("  ", stdout);
        doc_put(stdout, key, TEXT_MAX);
        fputs(" = ", stdout);
        doc_put(stdout, value, TEXT_MAX);
        putchar('\n');
    }
}

/* ---- the command ------------------------------------------------------------------------------------- */

static void print_info(const char *file, struct doc info) {
    put_escaped(stdout, file, strlen(file));
    putchar('\n');
    line_format(info);
    line_size(info);
    line_config(doc_get(info, "config"));
    line_group("tensors", doc_get(info, "tensors"));
    line_group("state", doc_get(info, "state"));
    line_optimizer(doc_get(info, "optimizer"));
    line_progress(doc_get(info, "progress"));
    line_envelope(doc_get(info, "envelope"));
    line_verification(doc_get(info, "verification"));
    table_dtypes(doc_get(info, "tensors"));
    table_sections(doc_get(info, "sections"));
    table_metadata(doc_get(info, "metadata"));
}

static int info(const char *file, struct ckpt *ckpt, bool json) {
    struct ckpt_err err;
    char *text;
    if (ckpt_info_json(ckpt, &text, &err))
        return complain_err(file, &err);
    if (json)
        doc_print(stdout, doc_of(text));
    else
        print_info(file, doc_of(text));
    free(text);
    return EXIT_FINE;
}

static int run(const struct command *self, int argc, char **argv) {
    bool json = false;
    const struct option options[] = {{"json", 0, &json, NULL}, {0}};
    const char *file;
    struct ckpt *ckpt;
    int code = args_parse(self, argc, argv, options, 1, 1, &file);
    if (code)
        return code;
    code = file_open(file, NULL, &ckpt);
    if (code)
        return code;
    code = info(file, ckpt, json);
    ckpt_close(ckpt);
    return code;
}

const struct command cmd_info = {
    .name = "info",
    .operands = "[--json] FILE",
    .summary = "say what a checkpoint is",
    .details =
        "Format, size, parameters by dtype, optimizer, progress, and what verification protects against.\n"
        "What is read for it is verified; a part that is damaged is left out ('ckpt verify' says why).\n\n"
        "  --json  the same facts and more as one JSON object\n",
    .run = run,
};
