/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves the program: messages, results, and text from files that a terminal must survive. */
#ifndef CLI_OUT_H
#define CLI_OUT_H

#include "cli/cli.h"

#include <stdio.h>

/* "ckpt: FILE: message" to stderr; file NULL: without it. Control bytes are escaped. */
void complain(const char *file, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The exit code that a CKPT_E_* means. */
int exit_code_of(int code);
/* complain(file, err->msg), file NULL: the message names it; returns the exit code that err means. */
int complain_err(const char *file, const struct ckpt_err *err);
/* Writes out what stdout holds: EXIT_FINE, or EXIT_SYSTEM after it has complained, once for a fault. */
int flush_stdout(void);
/* Complains that stdout refused with this errno; returns EXIT_SYSTEM. */
int complain_stdout(int os_errno);

/* All of len bytes to stdout's descriptor: 0, or the errno. */
int write_all(const void *bytes, size_t len);

/* Text with control bytes (those of C1 too) as \ooo. */
void put_escaped(FILE *stream, const char *text, size_t len);
/* A name: as it is in a pipe, escaped on a terminal. */
void put_name(FILE *stream, const char *text);
/* A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD. */
void put_json_string(FILE *stream, const char *text);
/* The same of text_len bytes, which may hold NULs, and which one more NUL follows. */
void put_json_text(FILE *stream, const char *text, size_t text_len);

#define COUNT_MAX 32
/* "1,234,567" */
const char *count_text(uint64_t count, char out[COUNT_MAX]);
/* "1.23 GB", powers of 1000; "999 bytes" */
const char *bytes_text(uint64_t bytes, char out[COUNT_MAX]);

#endif
