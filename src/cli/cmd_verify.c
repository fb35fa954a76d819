/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt verify: the verdict, in the order of the reference readers. */
#include "cli/args.h"
#include "cli/file.h"
#include "cli/out.h"

#include <inttypes.h>
#include <string.h>

struct outcome {
    int code; /* 0 or CKPT_E_* */
    struct ckpt_verdict verdict;
    struct ckpt_err err;
    double seconds;
};

/* ---- for programs ------------------------------------------------------------------------------------ */

static void member(const char *name, const char *text) {
    printf(",\n  \"%s\": ", name);
    if (*text)
        put_json_string(stdout, text);
    else
        fputs("null", stdout);
}

static void print_json(const struct outcome *out) {
    const struct ckpt_verdict *verdict = &out->verdict;
    printf("{\n  \"ok\": %s", out->code ? "false" : "true");
    member("verdict", verdict->line);
    member("format", verdict->format);
    printf(",\n  \"units\": %" PRIu64 ",\n  \"bytes\": %" PRIu64, verdict->units, verdict->bytes);
    member("strength", verdict->strength);
    member("manifest_sha256", verdict->manifest);
    member("message", out->code ? out->err.msg : "");
    puts("\n}");
}

/* ---- for people -------------------------------------------------------------------------------------- */

static const char *strength_text(const char *strength) {
    static const char *const texts[][2] = {
        {"fnv1a64", "FNV-1a 64: finds accidents, not attackers"},
        {"sha256", "SHA-256: finds accidents, and attackers once the manifest is pinned"},
        {"none", "none: the format has no checksums, only its structure was checked"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(texts[i][0], strength))
            return texts[i][1];
    return strength;
}

static void print_hashed(const struct outcome *out) {
    char count[COUNT_MAX], bytes[COUNT_MAX];
    const struct ckpt_verdict *verdict = &out->verdict;
    bool chunks = !strcmp(verdict->strength, "sha256"), sections = !strcmp(verdict->format, "oam");
    const char *what = chunks && sections ? "chunks and sections" : chunks ? "chunk" : "section";
    printf("checked   %s %s%s, %s hashed\n", count_text(verdict->units, count), what,
        verdict->units == 1 || (chunks && sections) ? "" : "s", bytes_text(verdict->bytes, bytes));
    if (out->seconds < 1)
        printf("time      %.1f ms", out->seconds * 1e3);
    else
        printf("time      %.2f s", out->seconds);
    printf(", %.2f GB/s\n", (double)verdict->bytes / (out->seconds + 1e-9) / 1e9);
}

static void print_summary(const struct outcome *out) {
    const struct ckpt_verdict *verdict = &out->verdict;
    if (!*verdict->format)
        return; /* it was not recognized: there is nothing more to say */
    printf("format    %s\n", verdict->format);
    if (*verdict->strength)
        printf("strength  %s\n", strength_text(verdict->strength));
    if (*verdict->manifest)
        printf("manifest  sha256:%s\n", verdict->manifest);
    if (verdict->units)
        print_hashed(out);
}

/* ---- the command ------------------------------------------------------------------------------------- */

static int report(const char *file, const struct outcome *out, bool json, bool quiet) {
    if (json)
        print_json(out);
    else if (*out->verdict.line) {
        put_escaped(stdout, out->verdict.line, strlen(out->verdict.line));
        putchar('\n');
        if (!quiet)
            print_summary(out);
    }
    int flushed = flush_stdout(); /* the verdict before the message, where both go to one place */
    int code = out->code ? complain_err(file, &out->err) : EXIT_FINE;
    return flushed ? flushed : code;
}

static int run(const struct command *self, int argc, char **argv) {
    bool json = false, quiet = false;
    struct watch watch;
    struct outcome out = {0};
    struct ckpt_options opt = {.cancel = &watch.cancel, .progress = &watch.progress};
    const struct option options[] = {{"contract", 0, NULL, &opt.contract},
        {"manifest", 0, NULL, &opt.manifest}, {"json", 0, &json, NULL}, {"quiet", 'q', &quiet, NULL}, {0}};
    const char *file;
    int code = args_parse(self, argc, argv, options, 1, 1, &file);
    if (code)
        return code;
    watch_start(&watch, quiet);
    out.code = file_check(file, &out.err);
    if (!out.code)
        out.code = ckpt_verify(file, &opt, &out.verdict, &out.err);
    out.seconds = watch_seconds(&watch);
    watch_stop(&watch);
    return watch_exit(report(file, &out, json, quiet));
}

const struct command cmd_verify = {
    .name = "verify",
    .operands = "[--contract C] [--manifest sha256:HEX] [--json] [-q] FILE",
    .summary = "verify everything and say whether the checkpoint holds",
    .details =
        "The first line is the verdict: 'ok', 'accepted' (an envelope), 'corrupt: MESSAGE', or what an envelope\n"
        "fails: 'truncated', 'layout', 'foreign-schema', 'foreign-learner', 'foreign-data', 'foreign-seed',\n"
        "'chunk-mismatch N'. Exit status 0 when it holds, 3 when it does not, 2 when FILE cannot be judged.\n\n"
        "  --contract C           the contract (JSON) that an envelope is held against\n"
        "  --manifest sha256:HEX  what the envelope's header must hash to\n"
        "  --json                 one object: ok, verdict, format, units, bytes, strength, manifest_sha256,\n"
        "                         message\n"
        "  -q, --quiet            the verdict line alone, and no progress\n",
    .run = run,
};
