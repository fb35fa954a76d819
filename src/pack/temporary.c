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

#define MARK ".ckpt-"
#define RANDOM_LETTERS 6
#define STEM_BYTES (NAME_MAX - 1 - (int)sizeof MARK + 1 - RANDOM_LETTERS)

/* "." NAME MARK, with NAME cut where the whole would be too long. */
static int prefix_of(const struct place *place, char out[TEMPORARY_NAME_BYTES]) {
    return snprintf(out, TEMPORARY_NAME_BYTES, ".%.*s" MARK, STEM_BYTES, place->name);
}

static int random_letters(char *out) {
    static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
    uint8_t bytes[RANDOM_LETTERS];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -1;
    for (int i = 0; i < RANDOM_LETTERS; i++)
        out[i] = letters[bytes[i] % 32];
    out[RANDOM_LETTERS] = '\0';
    return 0;
}

static bool is_temporary(const char *name, const char *prefix, size_t len) {
    return strncmp(name, prefix, len) == 0 && strlen(name) == len + RANDOM_LETTERS;
}

/* ---- making one ---------------------------------------------------------------------------------------- */

static int make_file(int dir, const char *name) {
    return openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int make_directory(int dir, const char *name) {
    if (mkdirat(dir, name, 0777) != 0)
        return -1;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Another writer may take a fresh temporary for a dead one's in the moment before it is locked: then it is
 * gone, and a new one is made. */
static bool holds(int dir, const char *name, int fd) {
    struct stat mine, there;
    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &mine) == 0 &&
           fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
}

static int make(const struct place *place, int (*create)(int dir, const char *name),
    char ret_name[TEMPORARY_NAME_BYTES], int *ret_fd, struct ckpt_err *err) {
    int len = prefix_of(place, ret_name);
    for (int tries = 0; tries < 100; tries++) {
        if (random_letters(ret_name + len) != 0)
            return err_os(err, errno, "%s: no random name for a temporary", place->path);
        int fd = create(place->dir, ret_name);
        if (fd >= 0 && holds(place->dir, ret_name, fd)) {
            *ret_fd = fd;
            return 0;
        }
        if (fd >= 0)
            close(fd);
        else if (errno != EEXIST && errno != ENOENT)
            return err_os(err, errno, "%s: a temporary file beside it", place->path);
    }
    return err_os(err, EEXIST, "%s: a temporary file beside it", place->path);
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

/* Whoever writes it holds its lock. */
static bool is_dead(int dir, const char *name) {
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool dead = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return dead;
}

/* Best effort: what cannot be removed is no reason not to write. */
static void clean(const struct place *place) {
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
        if (is_temporary(entry->d_name, prefix, len) && is_dead(place->dir, entry->d_name))
            temporary_remove(place->dir, entry->d_name);
    closedir(stream);
}

int temporary_file(
    const struct place *place, char ret_name[TEMPORARY_NAME_BYTES], int *ret_fd, struct ckpt_err *err) {
    clean(place);
    return make(place, make_file, ret_name, ret_fd, err);
}

int temporary_directory(
    const struct place *place, char ret_name[TEMPORARY_NAME_BYTES], int *ret_fd, struct ckpt_err *err) {
    clean(place);
    return make(place, make_directory, ret_name, ret_fd, err);
}
