/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into ckpt by atomic.py: counts the calls that change files and makes one of them go wrong.
 *
 *   FAULT_LOG=FILE   the name of each call, one a line
 *   FAULT_CALL=NAME  which calls are counted for FAULT_AT: "write", "sync", "syncdir", "rename", "close"; all
 *   FAULT_AT=N       the call that goes wrong, from 1; with FAULT_ON=1 all after it, too
 *   FAULT_DO=WHAT    "kill" (a write is half done first), a signal's number with "s" before it (the call goes
 *                    on), "short" (half of a write), or an errno (nothing is done)
 *
 * Only regular files and directories count: what goes to a pipe or a terminal changes no file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long count;

enum verdict { GO_ON, FAIL, HALF };

static void note(const char *name) {
    const char *path = getenv("FAULT_LOG");
    char line[32];
    if (!path)
        return;
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int len = snprintf(line, sizeof line, "%s\n", name);
    syscall(SYS_write, fd, line, (size_t)len);
    syscall(SYS_close, fd);
}

static bool is_kind(int fd, mode_t kind) {
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

/* Whether it is the turn of this call, and what happens to it then. */
static enum verdict judge(const char *name) {
    const char *call = getenv("FAULT_CALL"), *at = getenv("FAULT_AT"), *on = getenv("FAULT_ON"),
               *what = getenv("FAULT_DO");
    note(name);
    if (!at || !what || (call && strcmp(call, name) != 0))
        return GO_ON;
    long number = atomic_fetch_add(&count, 1) + 1, wanted = atol(at);
    if (number != wanted && !(on && number > wanted))
        return GO_ON;
    if (!strcmp(what, "kill") || !strcmp(what, "short"))
        return HALF;
    if (what[0] == 's') {
        kill(getpid(), atoi(what + 1));
        return GO_ON;
    }
    errno = atoi(what);
    return FAIL;
}

static void maybe_die(void) {
    const char *what = getenv("FAULT_DO");
    if (!strcmp(what, "kill"))
        kill(getpid(), SIGKILL);
}

/* For calls that are not writes: what is half of them? */
static bool refused(const char *name) {
    enum verdict verdict = judge(name);
    if (verdict == HALF)
        maybe_die();
    return verdict == FAIL;
}

static ssize_t put(int fd, const void *bytes, size_t len, bool placed, off_t off) {
    enum verdict verdict = is_kind(fd, S_IFREG) ? judge("write") : GO_ON;
    if (verdict == FAIL)
        return -1;
    size_t part = verdict == HALF && len > 1 ? len / 2 : len;
    long done = placed ? syscall(SYS_pwrite64, fd, bytes, part, off) : syscall(SYS_write, fd, bytes, part);
    if (verdict == HALF)
        maybe_die();
    return done;
}

ssize_t write(int fd, const void *bytes, size_t len) {
    return put(fd, bytes, len, false, 0);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t off) {
    return put(fd, bytes, len, true, off);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t off) {
    return put(fd, bytes, len, true, off);
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
    return is_kind(fd, S_IFREG) && refused("write") ? -1 : syscall(SYS_writev, fd, parts, number);
}

ssize_t copy_file_range(int in, off64_t *in_off, int out, off64_t *out_off, size_t len, unsigned flags) {
    return refused("write") ? -1 : syscall(SYS_copy_file_range, in, in_off, out, out_off, len, flags);
}

static bool sync_refused(int fd) {
    return refused(is_kind(fd, S_IFDIR) ? "syncdir" : "sync");
}

int fsync(int fd) {
    return sync_refused(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    return sync_refused(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int syncfs(int fd) {
    return refused("sync") ? -1 : (int)syscall(SYS_syncfs, fd);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    return refused("rename") ? -1 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    return renameat2(from_dir, from, to_dir, to, 0);
}

int rename(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int close(int fd) {
    bool counts = is_kind(fd, S_IFREG) && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    if (!counts || !refused("close"))
        return (int)syscall(SYS_close, fd);
    int why = errno;
    syscall(SYS_close, fd); /* it is closed whatever it returns */
    errno = why;
    return -1;
}
