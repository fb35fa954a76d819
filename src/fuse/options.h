/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: one table of options, which also prints --help. */
#ifndef FUSE_OPTIONS_H
#define FUSE_OPTIONS_H

#include <ckptfs.h>

#define OPTION_UNSET UINT64_MAX

/* Texts are owned; NULL when not given. Numbers are OPTION_UNSET when not given and there is no default. */
struct options {
    char *source, *mountpoint; /* as given */
    bool foreground, debug, single, unmount, help, version;
    uint64_t verify; /* enum ckpt_verify_mode */
    char *contract, *manifest, *log, *fsname, *subtype;
    uint64_t uid, gid, umask; /* default: the caller's, 0 */
    uint64_t notify_fd;
    uint64_t idle_timeout;     /* seconds; 0: never */
    uint64_t cache, readahead; /* bytes; cache 0: the library's default */
    char *gpu_device, *gpu_tensors;
    uint64_t gpu_budget; /* bytes */
    uint64_t gpu_dtype;  /* enum ckpt_gpu_dtype */
    uint64_t gpu_share;  /* enum ckpt_gpu_share */
    bool gpu;            /* also when only gpu_device was given */
    bool allow_other, allow_root, auto_unmount, noexec, xattr, direct, quiet, redact;
};

/* Returns EXIT_FINE or, after it has said what is wrong, EXIT_USAGE. Free in any case. */
int options_parse(struct options *options, int argc, char **argv);
void options_free(struct options *options);
/* --help and --version, on stdout. */
void options_help(void);

#endif
