/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/args.h"

#include "cli/out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct args {
    const struct command *self;
    const struct option *options;
    char **at, **end; /* the words that are left */
};

int args_wrong(const struct command *self, const char *fmt, ...) {
    char text[512];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    complain(NULL, "%s: %s", self->name, text);
    fprintf(stderr, "usage: %s %s %s\n", PROGRAM, self->name, self->operands);
    return EXIT_USAGE;
}

static const struct option *find_name(const struct args *args, const char *name, size_t len) {
    for (const struct option *option = args->options; option->name; option++)
        if (strlen(option->name) == len && memcmp(option->name, name, len) == 0)
            return option;
    return NULL;
}

static const struct option *find_letter(const struct args *args, char letter) {
    for (const struct option *option = args->options; option->name; option++)
        if (option->letter == letter)
            return option;
    return NULL;
}

/* Gives the option its argument: `attached`, or else the next word. */
static int take_value(struct args *args, const struct option *option, const char *attached) {
    if (!attached && args->at == args->end)
        return args_wrong(args->self, "option '--%s' needs an argument", option->name);
    *option->value = attached ? attached : *args->at++;
    return EXIT_FINE;
}

/* --name, --name=ARG, --name ARG */
static int long_option(struct args *args, const char *word) {
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct option *option = find_name(args, name, len);
    if (!option)
        return args_wrong(args->self, "unknown option '--%.*s'", (int)(len < 200 ? len : 200), name);
    if (option->value)
        return take_value(args, option, equals ? equals + 1 : NULL);
    if (equals)
        return args_wrong(args->self, "option '--%s' takes no argument", option->name);
    *option->on = true;
    return EXIT_FINE;
}

/* -a, -ab, -xARG, -x ARG */
static int short_options(struct args *args, const char *word) {
    for (const char *letter = word + 1; *letter; letter++) {
        const struct option *option = find_letter(args, *letter);
        if (!option)
            return args_wrong(args->self, "unknown option '-%c'", *letter);
        if (option->value)
            return take_value(args, option, letter[1] ? letter + 1 : NULL);
        *option->on = true;
    }
    return EXIT_FINE;
}

int args_parse(const struct command *self, int argc, char **argv, const struct option *options, int min,
    int max, const char **operands) {
    struct args args = {self, options, argv + 1, argv + argc};
    bool ended = false;
    int count = 0;
    memset(operands, 0, (size_t)max * sizeof *operands);
    while (args.at < args.end) {
        const char *word = *args.at++;
        int rc = EXIT_FINE;
        if (ended || word[0] != '-' || !word[1]) {
            if (count == max)
                return args_wrong(self, "too many operands: '%s'", word);
            operands[count++] = word;
        } else if (!strcmp(word, "--")) {
            ended = true;
        } else {
            rc = word[1] == '-' ? long_option(&args, word) : short_options(&args, word);
        }
        if (rc)
            return rc;
    }
    return count < min ? args_wrong(self, "an operand is missing") : EXIT_FINE;
}
