/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/option_rows.h"

#include "fuse/log.h"
#include "fuse/options.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define AT(member) offsetof(struct options, member)

/* clang-format off */
static const struct option_row switch_rows[] = {
    {"-o", NULL, OPTION_LIST, 0, 0, " LIST", "options separated by commas, see below"},
    {"-f", "--foreground", OPTION_SET, AT(foreground), 0, "", "stay in the foreground, messages to stderr"},
    {"-d", "--debug", OPTION_SET, AT(debug), 0, "", "show every request (implies -f)"},
    {"-s", "--single", OPTION_SET, AT(single), 0, "", "answer with one thread"},
    {"-u", "--unmount", OPTION_SET, AT(unmount), 0, "", "unmount, lazily when busy, and say who holds it"},
    {"-h", "--help", OPTION_SET, AT(help), 0, "", "print this"},
    {"-V", "--version", OPTION_SET, AT(version), 0, "", "print the version"},
};

static const struct option_row word_rows[] = {
    {"verify=", NULL, OPTION_CHOICE, AT(verify), 0, "lazy|full|background|off",
        "check at the first read (default), before mounting, by itself, never"},
    {"manifest=", NULL, OPTION_TEXT, AT(manifest), 0, "sha256:HEX", "the digest that an envelope's header must have"},
    {"contract=", NULL, OPTION_TEXT, AT(contract), 0, "FILE", "the contract that an envelope must fulfil"},
    {"uid=", NULL, OPTION_NUMBER, AT(uid), UINT32_MAX - 1, "N", "owner of everything (default: the caller)"},
    {"gid=", NULL, OPTION_NUMBER, AT(gid), UINT32_MAX - 1, "N", "group of everything (default: the caller's)"},
    {"umask=", NULL, OPTION_OCTAL, AT(umask), 0777, "OCT", "bits to take from 0555 (directories) and 0444 (files)"},
    {"allow_other", NULL, OPTION_SET, AT(allow_other), 0, "", "let all users in, as far as the modes do"},
    {"allow_root", NULL, OPTION_SET, AT(allow_root), 0, "", "let root in, too"},
    {"xattr", NULL, OPTION_SET, AT(xattr), 0, "", "attributes user.ckptfs.* (`ls -l` gets slower)"},
    {"noxattr", NULL, OPTION_CLEAR, AT(xattr), 0, "", "no attributes (default)"},
    {"direct", NULL, OPTION_SET, AT(direct), 0, "", "large files past the page cache, where the kernel can (Linux 6.6)"},
    {"nodirect", NULL, OPTION_CLEAR, AT(direct), 0, "", "all files through the page cache (default)"},
    {"cache=", NULL, OPTION_SIZE, AT(cache), 0, "SIZE", "bound of the memory for blocks and replies (default: 64M)"},
    {"readahead=", NULL, OPTION_SIZE, AT(readahead), 0, "SIZE", "the kernel's read-ahead (default: 256K), if permitted"},
    {"idle_timeout=", NULL, OPTION_NUMBER, AT(idle_timeout), INT_MAX, "SECONDS",
        "unmount when unused for so long (at most twice)"},
    {"notify_fd=", NULL, OPTION_NUMBER, AT(notify_fd), INT_MAX, "N", "write 's' there when mounted, 'f' on failure"},
    {"log=", NULL, OPTION_TEXT, AT(log), 0, "FILE", "messages go there (default: system log; with -f stderr)"},
    {"quiet", NULL, OPTION_SET, AT(quiet), 0, "", "no messages once mounted"},
    {"redact", NULL, OPTION_SET, AT(redact), 0, "", "no tensor or file names in these messages"},
    {"fsname=", NULL, OPTION_TEXT, AT(fsname), 0, "NAME", "source in /proc/mounts (default: SOURCE)"},
    {"subtype=", NULL, OPTION_TEXT, AT(subtype), 0, "NAME", "type in /proc/mounts, after `fuse.` (default: ckptfs)"},
    {"auto_unmount", NULL, OPTION_SET, AT(auto_unmount), 0, "", "a helper unmounts when the daemon dies"},
    {"noexec", NULL, OPTION_SET, AT(noexec), 0, "", "as in mount(8); ro, nodev and nosuid always hold"},
    {"exec", NULL, OPTION_CLEAR, AT(noexec), 0, "", NULL},
    {"gpu", NULL, OPTION_SET, AT(gpu), 0, "[=DEVICE]", "the directory gpu/: opening a tensor there loads it"},
    {"gpu=", NULL, OPTION_TEXT, AT(gpu_device), 0, "a number, GPU-UUID or PCI id", NULL},
    {"gpu_tensors=", NULL, OPTION_TEXT, AT(gpu_tensors), 0, "GLOB[:GLOB]", "only tensors whose names match (default: all)"},
    {"gpu_budget=", NULL, OPTION_SIZE, AT(gpu_budget), 0, "SIZE",
        "device memory, unused tensors included; 0: keep none (default: 9/10 of the device)"},
    {"gpu_dtype=", NULL, OPTION_CHOICE, AT(gpu_dtype), 0, "stored|f32|f16|bf16", "what floats become there (default: stored)"},
    {"gpu_share=", NULL, OPTION_CHOICE, AT(gpu_share), 0, "ipc|fd", "by IPC handle (default) or file descriptor"},
    {.name = "ro"}, {.name = "rw"}, {.name = "nodev"}, {.name = "dev"}, {.name = "nosuid"}, {.name = "suid"},
    {.name = "default_permissions"}, {.name = "defaults"}, {.name = "auto"}, {.name = "noauto"},
    {.name = "user"}, {.name = "user=*"}, {.name = "nouser"}, {.name = "users"}, {.name = "nousers"},
    {.name = "owner"}, {.name = "noowner"}, {.name = "group"}, {.name = "nogroup"}, {.name = "_netdev"},
    {.name = "nofail"}, {.name = "comment=*"}, {.name = "x-*"}, {.name = "X-*"},
    {.name = "atime"}, {.name = "noatime"}, {.name = "diratime"}, {.name = "nodiratime"}, {.name = "relatime"},
    {.name = "norelatime"}, {.name = "strictatime"}, {.name = "nostrictatime"}, {.name = "lazytime"},
    {.name = "nolazytime"}, {.name = "async"}, {.name = "sync"}, {.name = "dirsync"}, {.name = "silent"},
    {.name = "loud"},
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

const struct option_row *option_letter(char letter) {
    for (size_t i = 0; i < COUNT(switch_rows); i++)
        if (switch_rows[i].name[1] == letter)
            return &switch_rows[i];
    return NULL;
}

const struct option_row *option_long(const char *name) {
    for (size_t i = 0; i < COUNT(switch_rows); i++)
        if (switch_rows[i].longname && strcmp(switch_rows[i].longname, name) == 0)
            return &switch_rows[i];
    return NULL;
}

static bool row_matches(const struct option_row *row, const char *word) {
    size_t len = strlen(row->name);
    char last = row->name[len - 1];
    if (last == '*')
        return strncmp(row->name, word, len - 1) == 0;
    return last == '=' ? strncmp(row->name, word, len) == 0 : strcmp(row->name, word) == 0;
}

const struct option_row *option_word(const char *word) {
    for (size_t i = 0; i < COUNT(word_rows); i++)
        if (row_matches(&word_rows[i], word))
            return &word_rows[i];
    return NULL;
}

static void print_rows(const struct option_row *rows, size_t count) {
    char left[80];
    for (size_t i = 0; i < count; i++) {
        const struct option_row *row = &rows[i];
        if (!row->help)
            continue;
        snprintf(left, sizeof left, "%s%s%s%s", row->name, row->longname ? ", " : "",
            row->longname ? row->longname : "", row->value);
        printf("  %-24s%s%s\n", left, strlen(left) < 24 ? "" : "\n                          ", row->help);
    }
}

void options_help(void) {
    printf(
        "usage: " PROGRAM " [OPTIONS] SOURCE MOUNTPOINT\n"
        "       " PROGRAM " -u MOUNTPOINT\n\n"
        "Mounts a model checkpoint (.oam, envelope, safetensors, safetensors index) read-only as a directory.\n"
        "MOUNTPOINT may be /dev/fd/N, a FUSE device that the caller has opened and mounted.\n\n");
    print_rows(switch_rows, COUNT(switch_rows));
    printf("\nWords for -o (what mount and fstab hand over is accepted, too):\n");
    print_rows(word_rows, COUNT(word_rows));
    printf(
        "\nExit codes: 0 fine, 1 wrong use, 2 the system refused, 3 the checkpoint is corrupt, foreign or not\n"
        "the pinned one.\n");
}
