/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source.h"

#include "base/ovf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OFF_MAX ((uint64_t)INT64_MAX) /* the last offset that off_t holds */

struct file_source {
    struct source source;
    int fd;
    int dir; /* the directory that it was opened in; -1 for a sibling, which needs none */
};

static struct file_source *file_of(struct source *source) {
    return (struct file_source *)source;
}

static int file_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    ssize_t got = 0;
    if (off < OFF_MAX) {
        size_t most = (size_t)ovf_min(len, OFF_MAX - off);
        do
            got = pread(file_of(source)->fd, buf, most, (off_t)off);
        while (got < 0 && errno == EINTR);
    }
    if (got < 0)
        return err_os(
            err, errno, "%s: read %zu bytes at offset %llu", source->name, len, (unsigned long long)off);
    *ret_len = (size_t)got;
    return 0;
}

static struct source_stat convert(const struct stat *st) {
    return (struct source_stat){
        .size = (uint64_t)st->st_size,
        .ino = st->st_ino,
        .dev = st->st_dev,
        .atime_sec = st->st_atim.tv_sec,
        .mtime_sec = st->st_mtim.tv_sec,
        .ctime_sec = st->st_ctim.tv_sec,
        .atime_nsec = (uint32_t)st->st_atim.tv_nsec,
        .mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
        .ctime_nsec = (uint32_t)st->st_ctim.tv_nsec,
    };
}

static int file_stat(struct source *source, struct source_stat *ret_stat, struct ckpt_err *err) {
    struct stat st;
    if (fstat(file_of(source)->fd, &st) < 0)
        return err_os(err, errno, "%s: stat", source->name);
    *ret_stat = convert(&st);
    return 0;
}

static void file_advise(struct source *source, uint64_t off, uint64_t len, bool needed) {
    if (off >= OFF_MAX)
        return;
    /* A hint that is refused costs speed only. */
    (void)posix_fadvise(file_of(source)->fd, (off_t)off, (off_t)ovf_min(len, OFF_MAX - off),
        needed ? POSIX_FADV_WILLNEED : POSIX_FADV_DONTNEED);
}

static void file_close(struct source *source) {
    close(file_of(source)->fd);
    if (file_of(source)->dir >= 0)
        close(file_of(source)->dir);
}

static const char *kind_of(mode_t mode) {
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

/* Fills in what was opened, and refuses what is no regular file. */
static int take_stat(struct source *source, struct ckpt_err *err) {
    struct stat st;
    if (fstat(file_of(source)->fd, &st) < 0)
        return err_os(err, errno, "%s: stat", source->name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, CKPT_E_FORMAT, "%s is %s, not a regular file", source->name, kind_of(st.st_mode));
    source->opened = convert(&st);
    source->size = source->opened.size;
    return 0;
}

/* Opens `name` in directory `at`; `shown` is its name in messages. */
static int open_at(int at, const char *name, const char *shown, const struct source_ops *ops,
    struct source **ret_source, struct ckpt_err *err) {
    /* Non-blocking, since the open of a FIFO would wait for a writer; regular files do not care. */
    int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_os(err, errno, "open %s", shown);
    struct source *source;
    int rc = source_new(sizeof(struct file_source), ops, shown, &source, err);
    if (rc) {
        close(fd);
        return rc;
    }
    *file_of(source) = (struct file_source){.source = *source, .fd = fd, .dir = -1};
    rc = take_stat(source, err);
    if (rc) {
        source_close(source);
        return rc;
    }
    *ret_source = source;
    return 0;
}

/* Length of the directory part of a path with its last slash; 0: the current directory. */
static size_t dir_len(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static const struct source_ops sibling_ops = {
    .pread = file_pread,
    .stat = file_stat,
    .advise = file_advise,
    .close = file_close,
};

static int file_sibling(
    struct source *source, const char *name, struct source **ret_source, struct ckpt_err *err) {
    size_t dir = dir_len(source->name), len = strlen(name);
    char *shown = malloc(dir + len + 1);
    if (!shown)
        return err_set(err, CKPT_E_NOMEM, "open %s: no memory", name);
    memcpy(shown, source->name, dir);
    memcpy(shown + dir, name, len + 1);
    int rc = open_at(file_of(source)->dir, name, shown, &sibling_ops, ret_source, err);
    free(shown);
    return rc;
}

static const struct source_ops file_ops = {
    .pread = file_pread,
    .stat = file_stat,
    .advise = file_advise,
    .sibling = file_sibling,
    .close = file_close,
};

/* The directory as the path names it, also where the file itself is a symbolic link to elsewhere. It is kept
 * open, since a daemon leaves its current directory. */
static int open_dir(struct source *source, struct ckpt_err *err) {
    size_t len = dir_len(source->name);
    char *dir = len ? strndup(source->name, len) : strdup(".");
    if (!dir)
        return err_set(err, CKPT_E_NOMEM, "open %s: no memory", source->name);
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int os_errno = errno;
    free(dir);
    if (fd < 0)
        return err_os(err, os_errno, "open the directory of %s", source->name);
    file_of(source)->dir = fd;
    return 0;
}

int source_open_file(const char *path, struct source **ret_source, struct ckpt_err *err) {
    struct source *source;
    int rc = open_at(AT_FDCWD, path, path, &file_ops, &source, err);
    if (rc)
        return rc;
    rc = open_dir(source, err);
    if (rc) {
        source_close(source);
        return rc;
    }
    *ret_source = source;
    return 0;
}
