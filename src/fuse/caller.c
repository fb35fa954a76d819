/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/caller.h"

#include "fuse/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* With descriptors that refuse: a text for one that was closed has not arrived. */
static void occupy_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int caller_meet(struct caller *caller, int notify_fd) {
    bool usable = notify_fd < 0 || fcntl(notify_fd, F_GETFD) >= 0;
    occupy_standard_descriptors();
    if (!usable)
        return complain(EXIT_USAGE, NULL, "notify_fd=%d: not open", notify_fd);
    if (notify_fd < 0)
        return EXIT_FINE;
    caller->notify_fd = fcntl(notify_fd, F_DUPFD_CLOEXEC, 3);
    if (caller->notify_fd < 0)
        return complain(EXIT_SYSTEM, NULL, "notify_fd=%d: %s", notify_fd, strerror(errno));
    if (notify_fd > 2)
        close(notify_fd);
    return EXIT_FINE;
}

static void notify(int fd, char news) {
    if (fd >= 0) {
        (void)!write(fd, &news, 1);
        close(fd);
    }
}

_Noreturn static void await_news(const struct caller *caller, int fd) {
    unsigned char code;
    ssize_t len;
    do
        len = read(fd, &code, 1);
    while (len < 0 && errno == EINTR);
    if (len != 1) { /* the child died and could not tell anybody */
        code =
            (unsigned char)complain(EXIT_SYSTEM, caller->source, "the daemon died before the mount was up");
        notify(caller->notify_fd, 'f');
    }
    _exit(code);
}

int caller_leave(struct caller *caller) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return complain(EXIT_SYSTEM, caller->source, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        return complain(EXIT_SYSTEM, caller->source, "cannot fork: %s", strerror(errno));
    close(fds[pid > 0 ? 1 : 0]);
    if (pid > 0)
        await_news(caller, fds[0]);
    caller->parent_fd = fds[1];
    setsid();
    return chdir("/") < 0 ? complain(EXIT_SYSTEM, "/", "%s", strerror(errno)) : EXIT_FINE;
}

/* The caller may wait for the end of our output. */
static void leave_terminal(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd <= 2; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

void caller_tell(struct caller *caller, int code) {
    const unsigned char byte = (unsigned char)code;
    if (atomic_exchange(&caller->told, true))
        return;
    if (caller->parent_fd >= 0 && code == EXIT_FINE)
        leave_terminal();
    notify(caller->notify_fd, code == EXIT_FINE ? 's' : 'f');
    if (caller->parent_fd >= 0) {
        (void)!write(caller->parent_fd, &byte, 1);
        close(caller->parent_fd);
    }
}
