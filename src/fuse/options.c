/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/options.h"

#include "fuse/log.h"
#include "fuse/option_rows.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_MIN ((uint64_t)1 << 20)

/* ---- values ------------------------------------------------------------------------------------------ */

static bool parse_number(const char *text, int base, uint64_t max, uint64_t *ret_value) {
    uint64_t value = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        int digit = *text - '0';
        if (digit < 0 || digit >= base || value > (max - (uint64_t)digit) / (uint64_t)base)
            return false;
        value = value * (uint64_t)base + (uint64_t)digit;
    }
    *ret_value = value;
    return true;
}

/* "64M": digits and an optional K, M, G or T (powers of 1024). */
static bool parse_size(const char *text, uint64_t *ret_bytes) {
    static const char units[] = "KMGT";
    char digits[24];
    size_t len = strspn(text, "0123456789");
    const char *unit = text[len] ? strchr(units, toupper((unsigned char)text[len])) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (len >= sizeof digits || (text[len] && (!unit || text[len + 1])))
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    uint64_t value;
    if (!parse_number(digits, 10, (UINT64_MAX - 1) >> shift, &value))
        return false;
    *ret_bytes = value << shift;
    return true;
}

/* The rows list their words in the order of the enums. */
static_assert(
    CKPT_VERIFY_LAZY == 0 && CKPT_VERIFY_FULL == 1 && CKPT_VERIFY_BACKGROUND == 2 && CKPT_VERIFY_OFF == 3,
    "verify=");
static_assert(
    CKPT_GPU_STORED == 0 && CKPT_GPU_F32 == 1 && CKPT_GPU_F16 == 2 && CKPT_GPU_BF16 == 3, "gpu_dtype=");
static_assert(CKPT_GPU_IPC == 0 && CKPT_GPU_FD == 1, "gpu_share=");

/* words: "lazy|full". */
static bool parse_choice(const char *words, const char *text, uint64_t *ret_choice) {
    size_t len = strlen(text);
    uint64_t choice = 0;
    for (const char *word = words;; word++, choice++) {
        size_t end = strcspn(word, "|");
        if (end == len && !memcmp(word, text, len)) {
            *ret_choice = choice;
            return true;
        }
        word += end;
        if (!*word)
            return false;
    }
}

static bool parse_text(const char *text, char **field) {
    char *copy = *text ? strdup(text) : NULL;
    if (!copy)
        return false;
    free(*field);
    *field = copy;
    return true;
}

static bool parse_value(const struct option_row *row, void *field, const char *text) {
    switch (row->kind) {
    case OPTION_TEXT:
        return parse_text(text, field);
    case OPTION_NUMBER:
        return parse_number(text, 10, row->max, field);
    case OPTION_OCTAL:
        return parse_number(text, 8, row->max, field);
    case OPTION_SIZE:
        return parse_size(text, field);
    case OPTION_CHOICE:
        return parse_choice(row->value, text, field);
    default:
        return true;
    }
}

/* ---- words and lists --------------------------------------------------------------------------------- */

/* Sets what row says. value: the text after '=', for the kinds that have one. */
static int apply(struct options *options, const struct option_row *row, const char *word, const char *value) {
    void *field = (char *)options + row->field;
    if (row->kind == OPTION_SET || row->kind == OPTION_CLEAR)
        *(bool *)field = row->kind == OPTION_SET;
    else if (!parse_value(row, field, value))
        return complain(EXIT_USAGE, NULL, "option %s: not %s", word, row->value);
    return EXIT_FINE;
}

static int unknown(const char *dashes, const char *name) {
    return complain(EXIT_USAGE, NULL, "unknown option \"%s%s\" (see " PROGRAM " --help)", dashes, name);
}

static int apply_word(struct options *options, const char *word) {
    const struct option_row *row = option_word(word);
    const char *equals = strchr(word, '=');
    return row ? apply(options, row, word, equals ? equals + 1 : "") : unknown("", word);
}

/* The first mistake is what is returned; the words after it count, too, or notify_fd would get no news. */
static int first_of(int before, int rc) {
    return before != EXIT_FINE ? before : rc;
}

/* A backslash takes a comma or a backslash into a word, as libfuse and mount.fuse3 write them. */
static int apply_list(struct options *options, const char *list) {
    char *word = malloc(strlen(list) + 1);
    if (!word)
        return complain(EXIT_SYSTEM, NULL, "no memory");
    int rc = EXIT_FINE;
    size_t len = 0;
    for (const char *at = list;; at++) {
        if (*at == '\\' && at[1])
            word[len++] = *++at;
        else if (*at && *at != ',')
            word[len++] = *at;
        else {
            word[len] = '\0';
            rc = first_of(rc, len ? apply_word(options, word) : EXIT_FINE);
            len = 0;
            if (!*at)
                break;
        }
    }
    free(word);
    return rc;
}

/* ---- the command line -------------------------------------------------------------------------------- */

struct line {
    int argc, at;
    char **argv;
};

static int apply_long(struct options *options, const char *name) {
    const struct option_row *row = option_long(name);
    return row ? apply(options, row, name, NULL) : unknown("", name);
}

/* rest: of the argument; empty when the list is the next one. */
static int take_list(struct options *options, struct line *line, const char *rest) {
    if (!*rest && line->at == line->argc)
        return complain(EXIT_USAGE, NULL, "option -o: a list must follow");
    return apply_list(options, *rest ? rest : line->argv[line->at++]);
}

/* "-fs", "-oro", "-fo ro": letters up to the one that takes the rest, or the next argument. */
static int apply_letters(struct options *options, struct line *line, const char *letters) {
    int rc = EXIT_FINE;
    for (const char *at = letters; *at; at++) {
        const struct option_row *row = option_letter(*at);
        if (!row)
            rc = first_of(rc, unknown("-", (char[]){*at, '\0'}));
        else if (row->kind == OPTION_LIST)
            return first_of(rc, take_list(options, line, at + 1));
        else
            apply(options, row, row->name, NULL);
    }
    return rc;
}

static int check_operands(struct options *options, char **operands, int count) {
    if (options->help || options->version)
        return EXIT_FINE;
    int wanted = options->unmount ? 1 : 2;
    if (count != wanted)
        return complain(EXIT_USAGE, NULL, "%s (see " PROGRAM " --help)",
            options->unmount ? "give MOUNTPOINT alone with -u" : "give SOURCE and MOUNTPOINT");
    if (!parse_text(operands[count - 1], &options->mountpoint) ||
        (count > 1 && !parse_text(operands[0], &options->source)))
        return complain(EXIT_USAGE, NULL, "a name is empty");
    return EXIT_FINE;
}

static int check_cache(struct options *options) {
    if (options->cache == OPTION_UNSET)
        options->cache = 0;
    else if (options->cache < CACHE_MIN)
        return complain(
            EXIT_USAGE, NULL, "option cache: at least 1M, or what is verified is forgotten at once");
    return EXIT_FINE;
}

/* Words about what there is not are a mistake. */
static int check_gpu(struct options *options) {
    options->gpu = options->gpu || options->gpu_device;
    bool more = options->gpu_tensors || options->gpu_budget != OPTION_UNSET ||
                options->gpu_dtype != OPTION_UNSET || options->gpu_share != OPTION_UNSET;
    if (more && !options->gpu)
        return complain(EXIT_USAGE, NULL, "options gpu_*: only with gpu");
    if (options->gpu_dtype == OPTION_UNSET)
        options->gpu_dtype = CKPT_GPU_STORED;
    if (options->gpu_share == OPTION_UNSET)
        options->gpu_share = CKPT_GPU_IPC;
    return EXIT_FINE;
}

int options_parse(struct options *options, int argc, char **argv) {
    *options = (struct options){.uid = getuid(),
        .gid = getgid(),
        .notify_fd = OPTION_UNSET,
        .cache = OPTION_UNSET,
        .readahead = OPTION_UNSET,
        .gpu_budget = OPTION_UNSET,
        .gpu_dtype = OPTION_UNSET,
        .gpu_share = OPTION_UNSET};
    struct line line = {argc, 1, argv};
    char *operands[2];
    int count = 0, rc = EXIT_FINE;
    bool only_operands = false;
    while (line.at < argc) {
        char *arg = argv[line.at++];
        if (only_operands || arg[0] != '-' || !arg[1])
            operands[count++ < 1 ? 0 : 1] = arg;
        else if (strcmp(arg, "--") == 0)
            only_operands = true;
        else
            rc = first_of(
                rc, arg[1] == '-' ? apply_long(options, arg) : apply_letters(options, &line, arg + 1));
    }
    options->foreground = options->foreground || options->debug;
    rc = first_of(rc, check_cache(options));
    rc = first_of(rc, check_gpu(options));
    return rc != EXIT_FINE ? rc : check_operands(options, operands, count);
}

void options_free(struct options *options) {
    free(options->source);
    free(options->mountpoint);
    free(options->contract);
    free(options->manifest);
    free(options->log);
    free(options->fsname);
    free(options->subtype);
    free(options->gpu_device);
    free(options->gpu_tensors);
}
