/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt seal: a payload into an envelope. */
#include "cli/args.h"
#include "cli/file.h"
#include "cli/out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The command line's words, before they are judged. */
struct words {
    const char *contract, *identity[4], *chunk, *updates, *invocations;
};

static const char *const identity_names[] = {"schema", "learner", "data", "seed"};

/* Decimal digits, and nothing or one of KMGT when `suffix`. */
static bool number(const char *text, bool suffix, uint64_t *ret_value) {
    static const char letters[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || text[0] < '0' || text[0] > '9')
        return false;
    const char *letter = suffix && *end ? strchr(letters, *end) : NULL;
    unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
    *ret_value = (uint64_t)value << shift;
    return *ret_value >> shift == value && !end[letter != NULL];
}

static int need_number(
    const struct command *self, const char *name, const char *text, bool suffix, uint64_t *ret_value) {
    if (!text)
        return args_wrong(self, "option '--%s' is missing", name);
    if (!number(text, suffix, ret_value))
        return args_wrong(self, "--%s '%s': a %s is wanted", name, text,
            suffix ? "size such as 4194304 or 4M" : "number from 0 to 2^64 - 1");
    return EXIT_FINE;
}

/* A contract or all of what it would say, not both. */
static int take_contract(const struct command *self, const struct words *words, struct ckpt_seal *how) {
    for (int i = 0; i < 4; i++) {
        if (words->contract && words->identity[i])
            return args_wrong(self, "--%s does not go with a contract, which says it", identity_names[i]);
        if (!words->contract && !words->identity[i])
            return args_wrong(self, "option '--%s' is missing, or a contract", identity_names[i]);
        how->identity[i] = words->identity[i];
    }
    how->contract = words->contract;
    if (words->contract)
        return words->chunk ? args_wrong(self, "--chunk does not go with a contract, which says it")
                            : EXIT_FINE;
    int code = need_number(self, "chunk", words->chunk, true, &how->chunk_bytes);
    if (!code && !how->chunk_bytes)
        code = args_wrong(self, "--chunk '%s': a chunk has at least one byte", words->chunk);
    return code;
}

static int take_words(const struct command *self, const struct words *words, struct ckpt_seal *how) {
    int code = take_contract(self, words, how);
    if (!code)
        code = need_number(self, "updates", words->updates, false, &how->updates);
    return code ? code : need_number(self, "invocations", words->invocations, false, &how->invocations);
}

/* The library knows the payload as an open file, and calls it by that word; OUT may have it for its name. */
static int refused(const char *payload, const char *to, const struct ckpt_err *err) {
    static const char nameless[] = "payload: ";
    const size_t len = sizeof nameless - 1;
    if (strncmp(err->msg, nameless, len) != 0 || !strcmp(to, "payload"))
        return complain_err(to, err);
    complain(strcmp(payload, "-") ? payload : "standard input", "%s", err->msg + len);
    return exit_code_of(err->code);
}

static int seal(const char *payload, const char *to, const struct ckpt_seal *how) {
    struct watch watch;
    struct ckpt_err err;
    bool piped = !strcmp(payload, "-");
    int fd = piped ? STDIN_FILENO : open(payload, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        complain(payload, "%s", strerror(errno));
        return EXIT_SYSTEM;
    }
    watch_start(&watch, false);
    const struct ckpt_write_options options = {.cancel = &watch.cancel, .progress = &watch.progress};
    int rc = ckpt_seal(fd, how, to, &options, &err);
    watch_stop(&watch);
    if (!piped)
        close(fd);
    return rc ? watch_exit(refused(payload, to, &err)) : EXIT_FINE;
}

static int run(const struct command *self, int argc, char **argv) {
    struct words words = {0};
    const struct option options[] = {{"contract", 0, NULL, &words.contract},
        {identity_names[0], 0, NULL, &words.identity[0]}, {identity_names[1], 0, NULL, &words.identity[1]},
        {identity_names[2], 0, NULL, &words.identity[2]}, {identity_names[3], 0, NULL, &words.identity[3]},
        {"chunk", 0, NULL, &words.chunk}, {"updates", 0, NULL, &words.updates},
        {"invocations", 0, NULL, &words.invocations}, {0}};
    const char *operands[2];
    struct ckpt_seal how = {0};
    int code = args_parse(self, argc, argv, options, 2, 2, operands);
    if (!code)
        code = take_words(self, &words, &how);
    return code ? code : seal(operands[0], operands[1], &how);
}

const struct command cmd_seal = {
    .name = "seal",
    .operands = "--contract C --updates N --invocations N PAYLOAD OUT\n"
                "       " PROGRAM " seal --schema TEXT --learner TEXT --data TEXT --seed TEXT --chunk SIZE\n"
                "                 --updates N --invocations N PAYLOAD OUT",
    .summary = "put a payload into an envelope",
    .details =
        "PAYLOAD is a file, or '-' for standard input. OUT is replaced when the envelope is complete and on\n"
        "the disk, or not at all. Every chunk's SHA-256 is taken while it is copied.\n\n"
        "  --contract C     the contract (JSON); a payload of another length is refused (exit status 3)\n"
        "  --updates N      completed updates, the learner's step count\n"
        "  --invocations N  completed invocations, the sampler's position\n\n"
        "Instead of a contract:\n"
        "  --schema TEXT, --learner TEXT, --data TEXT, --seed TEXT\n"
        "                   the four identities, whose SHA-256 the envelope holds\n"
        "  --chunk SIZE     bytes of a chunk, such as 4M\n",
    .run = run,
};
