/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

int complain(int code, const char *subject, const char *fmt, ...) {
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (subject)
        fprintf(stderr, PROGRAM ": %s: %s\n", subject, text);
    else
        fprintf(stderr, PROGRAM ": %s\n", text);
    return code;
}

int log_open(struct log *log, const char *path, const char *subject, bool quiet) {
    log->subject = subject;
    log->quiet = quiet;
    log->fd = -1;
    if (!path)
        return EXIT_FINE;
    log->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    return log->fd < 0 ? complain(EXIT_SYSTEM, path, "cannot write the log: %s", strerror(errno)) : EXIT_FINE;
}

/* One write a line, so that the lines of several daemons in one file stay whole. */
static void say_file(struct log *log, const char *text) {
    struct tm utc;
    char when[32];
    time_t now = time(NULL);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    dprintf(log->fd, "%s " PROGRAM "[%d]: %s\n", when, (int)getpid(), text);
}

void log_say(void *arg, const char *line) {
    struct log *log = arg;
    char text[2048];
    bool up = atomic_load(&log->up);
    if (log->mute || (up && log->quiet))
        return;
    snprintf(text, sizeof text, "%s%s%s", log->subject ? log->subject : "", log->subject ? ": " : "", line);
    if (log->fd >= 0)
        say_file(log, text);
    else if (up && log->daemon)
        syslog(LOG_DAEMON | LOG_WARNING, "%s", text);
    else
        complain(0, NULL, "%s", text);
}

void log_close(struct log *log) {
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
}
