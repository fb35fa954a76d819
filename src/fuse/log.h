/* SPDX-License-Identifier: Apache-2.0 */
/* Where messages go: stderr until the daemon is on its own, then a file or the system log. */
#ifndef FUSE_LOG_H
#define FUSE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

#define PROGRAM "ckptfs"

enum exit_code {
    EXIT_FINE = 0,
    EXIT_USAGE = 1,      /* wrong use */
    EXIT_SYSTEM = 2,     /* the system refused: no file, no permission, no FUSE */
    EXIT_CHECKPOINT = 3, /* corrupt, foreign, or not the pinned one */
};

/* Prints "ckptfs: SUBJECT: message" on stderr (subject NULL: "ckptfs: message") and returns code. */
int complain(int code, const char *subject, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

struct log {
    const char *subject; /* whom the lines are about; NULL: left out */
    int fd;              /* a file of its own; -1: stderr or the system log */
    bool quiet;          /* say nothing once up */
    bool mute;           /* say nothing now: an error that comes back says the same */
    bool daemon;         /* once up nobody reads stderr: the system log. Set before any thread runs */
    atomic_bool up;
};

/* path NULL: no file. Returns an exit code after it has said what is wrong. */
int log_open(struct log *log, const char *path, const char *subject, bool quiet);
/* The `say` of struct ckpt_log: one line, from any thread. arg is a struct log. */
void log_say(void *arg, const char *line);
void log_close(struct log *log);

#endif
