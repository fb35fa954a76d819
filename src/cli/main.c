/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt: looks into checkpoints without mounting them. */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/out.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command *const commands[] = {&cmd_info, &cmd_ls, &cmd_cat, &cmd_extract, &cmd_diff,
    &cmd_verify, &cmd_seal, &cmd_unseal, &cmd_pack, &cmd_quantize, &cmd_convert};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static const struct command *find_command(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

/* ---- help -------------------------------------------------------------------------------------------- */

static void help_all(FILE *stream) {
    fputs("usage: " PROGRAM " COMMAND [OPTION...] OPERAND...\n\n", stream);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(stream, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    fputs(
        "  help      this text, or that of a command: " PROGRAM " help COMMAND\n\n"
        "FILE is an .oam, an envelope, a safetensors file or a *.safetensors.index.json, told apart by\n"
        "content. Every byte shown has been verified.\n\n"
        "Exit status: 0 fine, 1 wrong use, 2 the system refused, 3 corrupt, foreign or not the pinned one.\n",
        stream);
}

static void help_command(const struct command *command) {
    printf("usage: %s %s %s\n\n%s.\n\n%s", PROGRAM, command->name, command->operands, command->summary,
        command->details);
}

static int unknown_command(const char *name) {
    complain(NULL, "unknown %s '%s'; '%s help' lists the commands", name[0] == '-' ? "option" : "command",
        name, PROGRAM);
    return EXIT_USAGE;
}

static int help(const char *name) {
    const struct command *command = name ? find_command(name) : NULL;
    if (name && !command && strcmp(name, "help") != 0)
        return unknown_command(name);
    if (command)
        help_command(command);
    else
        help_all(stdout);
    return EXIT_FINE;
}

/* ---- running ----------------------------------------------------------------------------------------- */

static bool wants_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        help_all(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
        return help(argv[2]);
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        printf("%s %s\n", PROGRAM, ckpt_version());
        return EXIT_FINE;
    }
    const struct command *command = find_command(name);
    if (!command)
        return unknown_command(name);
    if (wants_help(argc - 1, argv + 1))
        return help(name);
    return command->run(command, argc - 1, argv + 1);
}

/* A closed standard descriptor would be given to the next file opened; take it with one that refuses. */
static void occupy_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv) {
    occupy_standard_descriptors();
    signal(SIGXFSZ, SIG_IGN); /* a file that grows past the limit is an error like others, with a message */
    int code = run(argc, argv);
    int flushed = flush_stdout();
    return flushed ? flushed : code;
}
