/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what a target's temporaries are named ------------------------------------------------------------- */

#define MARK ".ckpt-tmp-"
#define LETTERS "0123456789abcdefghijklmnopqrstuv"
#define RANDOM_LETTERS 16 /* nobody gives a file such a name: whatever has it may be removed */
#define STEM_BYTES (NAME_MAX - 1 - (int)sizeof MARK + 1 - RANDOM_LETTERS)

/* "." NAME MARK, with NAME cut where the whole would be too long. */
static int prefix_of(const struct place *place, char out[TEMPORARY_NAME_BYTES]) {
    return snprintf(out, TEMPORARY_NAME_BYTES, ".%.*s" MARK, STEM_BYTES, place->name);
}

static int random_letters(char *out) {
    uint8_t bytes[RANDOM_LETTERS];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -1;
    for (int i = 0; i < RANDOM_LETTERS; i++)
        out[i] = LETTERS[bytes[i] % (sizeof LETTERS - 1)];
    out[RANDOM_LETTERS] = '\0';
    return 0;
}

static bool is_temporary(const char *name, const char *prefix, size_t len) {
    return strncmp(name, prefix, len) == 0 && strlen(name) == len + RANDOM_LETTERS &&
           strspn(name + len, LETTERS) == RANDOM_LETTERS;
}

/* ---- the two kinds ------------------------------------------------------------------------------------- */

struct kind {
    mode_t type, hidden;                    /* S_IFREG and so on; the mode until it is complete */
    int (*make)(int dir, const char *name); /* a descriptor; EEXIST: try another name */
    void (*remove)(int dir, const char *name);
};

static int make_file(int dir, const char *name) {
    return openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int make_directory(int dir, const char *name) {
    if (mkdirat(dir, name, 0777) != 0)
        return -1;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) /* another writer took it for a dead one's */
        errno = EEXIST;
    return fd;
}

static void remove_file(int dir, const char *name) {
    (void)unlinkat(dir, name, 0);
}

static const struct kind files = {S_IFREG, 0600, make_file, remove_file};
static const struct kind directories = {S_IFDIR, 0700, make_directory, temporary_remove};

/* Locks it. False: somebody else has, or the name stands for something else by now. Who holds the lock of
 * what has the name may remove it: a writer that made it but did not lock it yet makes another one. */
static bool hold(int dir, const char *name, int fd, mode_t type) {
    struct stat mine, there;
    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &mine) == 0 &&
           fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev && (mine.st_mode & S_IFMT) == type;
}

/* ---- making one ---------------------------------------------------------------------------------------- */

static int hide(
    const struct place *place, const struct kind *kind, struct temporary *temporary, struct ckpt_err *err) {
    struct stat made;
    if (fstat(temporary->fd, &made) != 0 || fchmod(temporary->fd, kind->hidden) != 0)
        return err_os(err, errno, "%s: the mode of a temporary beside it", place->path);
    temporary->mode = made.st_mode & 07777;
    return 0;
}

static int make(
    const struct place *place, const struct kind *kind, struct temporary *temporary, struct ckpt_err *err) {
    int len = prefix_of(place, temporary->name);
    for (int tries = 0; tries < 100; tries++) {
        if (random_letters(temporary->name + len) != 0)
            return err_os(err, errno, "%s: no random name for a temporary", place->path);
        temporary->fd = kind->make(place->dir, temporary->name);
        if (temporary->fd >= 0 && hold(place->dir, temporary->name, temporary->fd, kind->type))
            return hide(place, kind, temporary, err);
        if (temporary->fd < 0 && errno != EEXIST)
            return err_os(err, errno, "%s: a temporary beside it", place->path);
        if (temporary->fd >= 0)
            close(temporary->fd);
        temporary->fd = -1;
    }
    return err_os(err, EEXIST, "%s: a temporary beside it", place->path);
}

/* ---- removing what is left over ------------------------------------------------------------------------ */

static void remove_below(int dir) {
    DIR *stream = fdopendir(dir);
    if (!stream) {
        close(dir);
        return;
    }
    for (struct dirent *entry; (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            temporary_remove(dirfd(stream), entry->d_name);
    closedir(stream);
}

void temporary_remove(int dir, const char *name) {
    if (unlinkat(dir, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
        return;
    int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below >= 0)
        remove_below(below);
    (void)unlinkat(dir, name, AT_REMOVEDIR);
}

/* The lock is kept until it is gone. */
static void remove_if_dead(int dir, const char *name, const struct kind *kind) {
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (hold(dir, name, fd, kind->type))
        kind->remove(dir, name);
    close(fd);
}

/* Best effort: what cannot be removed is no reason not to write. */
static void clean(const struct place *place, const struct kind *kind) {
    char prefix[TEMPORARY_NAME_BYTES];
    size_t len = (size_t)prefix_of(place, prefix);
    int copy = openat(place->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    if (!stream) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *entry; (entry = readdir(stream));)
        if (is_temporary(entry->d_name, prefix, len))
            remove_if_dead(place->dir, entry->d_name, kind);
    closedir(stream);
}

static int begin(const struct place *place, const struct kind *kind, struct temporary *ret_temporary,
    struct ckpt_err *err) {
    clean(place, kind);
    ret_temporary->fd = -1;
    int rc = make(place, kind, ret_temporary, err);
    if (rc && ret_temporary->fd >= 0) {
        kind->remove(place->dir, ret_temporary->name);
        close(ret_temporary->fd);
        ret_temporary->fd = -1;
    }
    return rc;
}

int temporary_file(const struct place *place, struct temporary *ret_temporary, struct ckpt_err *err) {
    return begin(place, &files, ret_temporary, err);
}

int temporary_directory(const struct place *place, struct temporary *ret_temporary, struct ckpt_err *err) {
    return begin(place, &directories, ret_temporary, err);
}
