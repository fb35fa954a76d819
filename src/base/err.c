/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void copy_words(struct ckpt_err *err, const char *words) {
    snprintf(err->words, sizeof err->words, "%s", words);
}

int err_set(struct ckpt_err *err, int code, const char *fmt, ...) {
    if (!err)
        return code;
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    err->code = code;
    err->os_errno = 0;
    copy_words(err, err->msg);
    return code;
}

int err_verdict(struct ckpt_err *err, int code, const char *words, const char *detail, ...) {
    if (!err)
        return code;
    int used = snprintf(err->msg, sizeof err->msg, "%s: ", words);
    if (used >= 0 && (size_t)used < sizeof err->msg) {
        va_list args;
        va_start(args, detail);
        vsnprintf(err->msg + used, sizeof err->msg - (size_t)used, detail, args);
        va_end(args);
    }
    err->code = code;
    err->os_errno = 0;
    copy_words(err, words);
    return code;
}

int err_os(struct ckpt_err *err, int os_errno, const char *fmt, ...) {
    if (!err)
        return CKPT_E_IO;
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    size_t used = strlen(err->msg);
    snprintf(err->msg + used, sizeof err->msg - used, ": %s", strerror(os_errno));
    err->code = CKPT_E_IO;
    err->os_errno = os_errno;
    copy_words(err, err->msg);
    return CKPT_E_IO;
}

int err_wrap(struct ckpt_err *err, int code, const char *fmt, ...) {
    if (!err)
        return code;
    char inner[sizeof err->msg];
    memcpy(inner, err->msg, sizeof inner);
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    size_t used = strlen(err->msg);
    snprintf(err->msg + used, sizeof err->msg - used, ": %s", inner);
    return err->code;
}

/* One row an error: what a file system reports for it. */
static const struct {
    int code, os_errno;
} errno_table[] = {
    {CKPT_E_INVAL, EINVAL},
    {CKPT_E_NOMEM, ENOMEM},
    {CKPT_E_FORMAT, EIO},
    {CKPT_E_CORRUPT, EIO},
    {CKPT_E_LIMIT, EOVERFLOW},
    {CKPT_E_MISMATCH, EIO},
    {CKPT_E_CHANGED, ESTALE},
    {CKPT_E_UNSUPPORTED, EOPNOTSUPP},
    {CKPT_E_GPU, EIO},
    {CKPT_E_INTR, EINTR},
    {CKPT_E_NOENT, ENOENT},
};

int ckpt_errno(const struct ckpt_err *err) {
    if ((err->code == CKPT_E_IO || err->code == CKPT_E_GPU) && err->os_errno)
        return err->os_errno;
    for (size_t i = 0; i < sizeof errno_table / sizeof *errno_table; i++)
        if (errno_table[i].code == err->code)
            return errno_table[i].os_errno;
    return EIO;
}
