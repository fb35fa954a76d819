/* SPDX-License-Identifier: Apache-2.0 */
/* Long work: progress on a terminal, and a clean stop at SIGINT and SIGTERM. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "cli/cli.h"

struct watch {
    struct ckpt_cancel cancel;
    struct ckpt_progress progress;
    bool shows;         /* progress is wanted */
    bool drawn;         /* a line stands on the terminal */
    double began, last; /* seconds */
};

/* From here on SIGINT and SIGTERM only set a flag. quiet: no progress, not even on a terminal. */
void watch_start(struct watch *watch, bool quiet);
/* Draws the line anew, at most 10 times a second. What watch->progress calls. */
void watch_tell(struct watch *watch, uint64_t done, uint64_t total);
/* Erases the line; the next watch_tell draws it again. To be called before anything else is printed. */
void watch_erase(struct watch *watch);
/* Erases the line for good. */
void watch_stop(struct watch *watch);
/* Seconds since watch_start. */
double watch_seconds(const struct watch *watch);
/* The exit code when a signal asked to stop, else `code`. */
int watch_exit(int code);

#endif
