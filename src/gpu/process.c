/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/process.h"

#include "gpu/fault.h"
#include "gpu/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_MS 5000

extern char **environ;

/* Signals as they are for a new program: our threads block them, and the daemon ignores some. */
static int set_signals(posix_spawnattr_t *attr) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int rc = posix_spawnattr_setsigmask(attr, &none);
    if (!rc)
        rc = posix_spawnattr_setsigdefault(attr, &all);
    return rc ? rc : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(const char *program, int sock, pid_t *ret_pid) {
    char *argv[] = {(char *)(uintptr_t)program, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    int rc = posix_spawn_file_actions_adddup2(&files, sock, GPU_SOCKET_FD);
    if (!rc)
        rc = set_signals(&attr);
    if (!rc)
        rc = posix_spawn(ret_pid, program, &files, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

int process_start(const char *program, struct process *ret_process, struct ckpt_err *err) {
    int ends[2];
    pid_t pid;
    int rc = gpu_wire_pair(ends, err);
    if (rc)
        return rc;
    int failed = spawn(program, ends[1], &pid);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        return gpu_fault(err, ENODEV, "cannot start the GPU helper %s: %s", program, strerror(failed));
    }
    *ret_process = (struct process){pid, ends[0]};
    return 0;
}

bool process_is_gone(const struct process *process) {
    struct pollfd at = {.fd = process->sock};
    return poll(&at, 1, 0) == 1 && (at.revents & POLLHUP);
}

/* As waitpid: 0 when it has not ended in time. Without a descriptor for it (before Linux 5.3) time does not
 * count. */
static pid_t await_end(pid_t pid, int *ret_status) {
    struct pollfd at = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    int ready = 1;
    pid_t ended;
    if (at.fd >= 0) {
        do
            ready = poll(&at, 1, END_MS);
        while (ready < 0 && errno == EINTR);
        close(at.fd);
    }
    do
        ended = waitpid(pid, ret_status, ready == 0 ? WNOHANG : 0);
    while (ended < 0 && errno == EINTR);
    return ended;
}

void process_end(struct process *process, char how[64]) {
    int status = 0;
    if (!process->pid)
        return;
    kill(process->pid, SIGKILL);
    pid_t ended = await_end(process->pid, &status);
    if (ended == 0)
        snprintf(how, 64, "process %d cannot be killed", (int)process->pid);
    else if (ended < 0) /* we were started with SIGCHLD ignored */
        snprintf(how, 64, "nobody knows how");
    else if (WIFSIGNALED(status))
        snprintf(how, 64, "signal %d", WTERMSIG(status));
    else
        snprintf(how, 64, "exit code %d", WEXITSTATUS(status));
    close(process->sock);
    *process = (struct process){0, -1};
}
