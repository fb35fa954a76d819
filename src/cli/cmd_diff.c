/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt diff: what differs between two checkpoints. */
#include "cli/args.h"
#include "cli/file.h"
#include "cli/out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define EXIT_DIFFERS 1 /* as diff(1) */
#define VALUE_MAX 60   /* bytes of a document's value that are shown */

struct show {
    bool json, quiet, titled;
    uint64_t shown;
    struct watch *watch;
};

static const char *const kinds[] = {
    [CKPT_REMOVED] = "removed", [CKPT_ADDED] = "added", [CKPT_CHANGED] = "changed"};

/* ---- for programs -------------------------------------------------------------------------------------- */

static void json_number(const char *key, double value) {
    if (isfinite(value))
        printf(", \"%s\": %.17g", key, value);
    else
        printf(", \"%s\": \"%s\"", key, isnan(value) ? "NaN" : "Infinity");
}

static void json_side(const char *key, const struct ckpt_difference_side *side) {
    printf(", \"%s\": ", key);
    if (side->json) {
        fwrite(side->json, 1, side->json_len, stdout);
    } else if (side->dtype) {
        printf("{\"dtype\": \"%s\", \"encoding\": \"%s\", \"shape\": [", side->dtype, side->encoding);
        for (uint32_t i = 0; i < side->rank; i++)
            printf("%s%" PRIu64, i ? ", " : "", side->shape[i]);
        printf("], \"bytes\": %" PRIu64 "}", side->bytes);
    } else if (side->bytes) {
        printf("{\"bytes\": %" PRIu64 "}", side->bytes);
    } else {
        fputs("null", stdout);
    }
}

static void json_values(const struct ckpt_difference *difference) {
    printf(", \"elements\": %" PRIu64 ", \"differing\": %" PRIu64 ", \"nans\": %" PRIu64,
        difference->elements, difference->differing, difference->nans);
    if (difference->exact)
        printf(", \"max_abs\": %" PRIu64, difference->max_integer);
    else
        json_number("max_abs", difference->max_abs);
    json_number("mean_abs", difference->mean_abs);
}

static void show_json(const struct show *show, const struct ckpt_difference *difference) {
    printf("%s\n    {\"kind\": \"%s\", \"place\": ", show->shown ? "," : "{\n  \"differences\": [",
        kinds[difference->kind]);
    put_json_string(stdout, difference->place);
    fputs(", \"name\": ", stdout);
    put_json_text(stdout, difference->name, difference->name_len);
    json_side("a", &difference->a);
    json_side("b", &difference->b);
    if (difference->a.dtype && difference->b.dtype)
        printf(", \"reshaped\": %s, \"retyped\": %s", difference->reshaped ? "true" : "false",
            difference->retyped ? "true" : "false");
    if (difference->compared)
        json_values(difference);
    putchar('}');
}

/* ---- for people ---------------------------------------------------------------------------------------- */

static void put_text(const char *text, size_t len) {
    if (isatty(STDOUT_FILENO))
        put_escaped(stdout, text, len);
    else
        fwrite(text, 1, len, stdout);
}

static void put_value(const struct ckpt_difference_side *side) {
    bool cut = side->json_len > VALUE_MAX;
    put_escaped(stdout, side->json, cut ? VALUE_MAX : side->json_len);
    fputs(cut ? "..." : "", stdout);
}

/* "config.json  step  12 -> 13" */
static void show_other(const struct ckpt_difference *difference) {
    char bytes[2][COUNT_MAX];
    const struct ckpt_difference_side *a = &difference->a, *b = &difference->b;
    printf("%-8s  %s", kinds[difference->kind], difference->place);
    if (difference->name_len) {
        fputs("  ", stdout);
        put_text(difference->name, difference->name_len);
    }
    fputs("  ", stdout);
    if (a->json)
        put_value(a);
    fputs(a->json && b->json ? " -> " : "", stdout);
    if (b->json)
        put_value(b);
    if (!a->json && !b->json) {
        if (difference->kind == CKPT_CHANGED)
            printf("%s -> %s", bytes_text(a->bytes, bytes[0]), bytes_text(b->bytes, bytes[1]));
        else
            fputs(bytes_text(a->bytes + b->bytes, bytes[0]), stdout);
    }
    putchar('\n');
}

static const char *type_of(const struct ckpt_difference_side *side) {
    return !strcmp(side->encoding, "dense") ? side->dtype : !strcmp(side->encoding, "q4") ? "Q4" : "Q8";
}

static void put_shape(const struct ckpt_difference_side *side) {
    putchar('[');
    for (uint32_t i = 0; i < side->rank; i++)
        printf("%s%" PRIu64, i ? ", " : "", side->shape[i]);
    putchar(']');
}

/* "F32 -> BF16 [2, 3] -> [3, 2]" */
static void put_types(const struct ckpt_difference *difference) {
    const struct ckpt_difference_side *one = difference->kind == CKPT_ADDED ? &difference->b : &difference->a;
    fputs(type_of(one), stdout);
    if (difference->retyped)
        printf(" -> %s", type_of(&difference->b));
    putchar(' ');
    put_shape(one);
    if (difference->reshaped) {
        fputs(" -> ", stdout);
        put_shape(&difference->b);
    }
}

/* "12 of 1,024 (3 NaN)" */
static const char *share_text(const struct ckpt_difference *difference, char *out, size_t cap) {
    char differing[COUNT_MAX] = "none", elements[COUNT_MAX], nans[COUNT_MAX];
    if (difference->differing)
        count_text(difference->differing, differing);
    int len = snprintf(out, cap, "%s of %s", differing, count_text(difference->elements, elements));
    if (difference->nans)
        snprintf(out + len, cap - (size_t)len, " (%s NaN)", count_text(difference->nans, nans));
    return out;
}

static void show_tensor(struct show *show, const struct ckpt_difference *difference) {
    char max[COUNT_MAX] = "-", mean[COUNT_MAX] = "-", share[4 * COUNT_MAX] = "-";
    if (!show->titled)
        puts("what      max          mean         elements that differ    tensor");
    show->titled = true;
    if (difference->compared) {
        if (difference->exact)
            snprintf(max, sizeof max, "%" PRIu64, difference->max_integer);
        else
            snprintf(max, sizeof max, "%.6g", difference->max_abs);
        snprintf(mean, sizeof mean, "%.6g", difference->mean_abs);
        share_text(difference, share, sizeof share);
    }
    const char *what = difference->reshaped  ? "reshaped"
                       : difference->retyped ? "retyped"
                                             : kinds[difference->kind];
    printf("%-8s  %-11s  %-11s  %-22s  %s/", what, max, mean, share, difference->place);
    put_text(difference->name, difference->name_len);
    fputs("  ", stdout);
    put_types(difference);
    putchar('\n');
}

/* ---- the command --------------------------------------------------------------------------------------- */

static void tell(void *arg, const struct ckpt_difference *difference) {
    struct show *show = arg;
    watch_stop(show->watch);
    if (show->json)
        show_json(show, difference);
    else if (difference->a.dtype || difference->b.dtype)
        show_tensor(show, difference);
    else
        show_other(difference);
    show->shown++;
}

static int compare(struct show *show, struct ckpt *a, struct ckpt *b) {
    const struct ckpt_write_options options = {&show->watch->cancel, &show->watch->progress};
    struct ckpt_err err;
    uint64_t count = 0;
    bool silent = show->quiet && !show->json;
    int rc = ckpt_diff(a, b, silent ? NULL : tell, show, &options, &count, &err);
    watch_stop(show->watch);
    if (rc)
        return watch_exit(complain_err(NULL, &err)); /* the message names the file */
    if (show->json)
        printf("%s],\n  \"equal\": %s\n}\n", count ? "\n  " : "{\n  \"differences\": [",
            count ? "false" : "true");
    return count ? EXIT_DIFFERS : EXIT_FINE;
}

static int run(const struct command *self, int argc, char **argv) {
    struct watch watch;
    struct show show = {.watch = &watch};
    const struct option options[] = {{"json", 0, &show.json, NULL}, {"quiet", 'q', &show.quiet, NULL}, {0}};
    const char *operands[2];
    struct ckpt *a, *b;
    int code = args_parse(self, argc, argv, options, 2, 2, operands);
    if (code)
        return code;
    watch_start(&watch, show.quiet);
    code = file_open(operands[0], &watch, &a);
    if (code)
        return code;
    code = file_open(operands[1], &watch, &b);
    if (!code) {
        code = compare(&show, a, b);
        ckpt_close(b);
    }
    ckpt_close(a);
    return code;
}

const struct command cmd_diff = {
    .name = "diff",
    .operands = "[--json] [-q] A B",
    .summary = "say how two checkpoints differ, tensor by tensor",
    .details =
        "Tensors that only one has, that have another shape or type, and those with other values, with the\n"
        "largest and the mean absolute difference; members of config.json, progress.json, metadata.json and\n"
        "optimizer.json that differ. A and B may have different formats. Both are read once and verified.\n"
        "Exit status 0 when they are equal, 1 when they differ.\n\n"
        "  --json       one object: differences, an array, and equal\n"
        "  -q, --quiet  say nothing, and no progress\n",
    .run = run,
};
