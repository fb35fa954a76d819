/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/file.h"

#include "cli/out.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

int file_check(const char *file, struct ckpt_err *err) {
    struct stat st;
    if (stat(file, &st) < 0 || S_ISREG(st.st_mode))
        return 0;
    bool dir = S_ISDIR(st.st_mode);
    *err = (struct ckpt_err){.code = CKPT_E_IO, .os_errno = dir ? EISDIR : EINVAL};
    snprintf(err->words, sizeof err->words, "%s", dir ? "is a directory" : "is not a regular file");
    snprintf(err->msg, sizeof err->msg, "%s", err->words);
    return CKPT_E_IO;
}

int file_open(const char *file, const struct watch *watch, struct ckpt **ret_ckpt) {
    const struct ckpt_options opt = {.cancel = watch ? &watch->cancel : NULL};
    struct ckpt_err err;
    if (file_check(file, &err) || ckpt_open(file, &opt, ret_ckpt, &err))
        return watch_exit(complain_err(file, &err));
    return EXIT_FINE;
}
