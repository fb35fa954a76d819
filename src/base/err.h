/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: set and returned in one statement, wrapped with context on the way up. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <ckptfs.h>

/* Sets *err (NULL allowed) and returns code. words and msg become the formatted message. */
int err_set(struct ckpt_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set, for a fault with a verdict of its own: words is the verdict, msg "words: detail". */
int err_verdict(struct ckpt_err *err, int code, const char *words, const char *detail, ...)
    __attribute__((format(printf, 4, 5)));

/* CKPT_E_IO from an errno: msg is "message: strerror". */
int err_os(struct ckpt_err *err, int os_errno, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the message and returns the code that err holds (or `code` when err is NULL). */
int err_wrap(struct ckpt_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
