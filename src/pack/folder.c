/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/folder.h"

#include "pack/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    struct place place; /* of the target */
    struct temporary temporary;
    mode_t mode; /* that the target gets */
};

static void end(struct folder *folder) {
    if (folder->temporary.fd >= 0)
        close(folder->temporary.fd);
    place_close(&folder->place);
    free(folder);
}

void folder_abandon(struct folder *folder) {
    if (!folder)
        return;
    if (folder->temporary.fd >= 0)
        temporary_remove(folder->place.dir, folder->temporary.name);
    place_undo(&folder->place);
    end(folder);
}

/* ---- beginning ----------------------------------------------------------------------------------------- */

static int entries_of(const struct place *place, unsigned *ret_count, struct ckpt_err *err) {
    int fd = openat(place->dir, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (!stream) {
        int refused = errno;
        if (fd >= 0)
            close(fd);
        return err_os(err, refused, "%s", place->path);
    }
    unsigned count = 0;
    for (struct dirent *entry; count < 1 && (entry = readdir(stream));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(stream);
    *ret_count = count;
    return 0;
}

/* The mode of the empty directory that is there; *ret_mode stays as it is when there is none. */
static int look_at_target(const struct place *place, mode_t *ret_mode, struct ckpt_err *err) {
    struct stat target, around;
    unsigned entries = 0;
    if (fstatat(place->dir, place->name, &target, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_os(err, errno, "%s", place->path);
    if (!S_ISDIR(target.st_mode))
        return err_os(err, EEXIST, "%s is no directory", place->path);
    if (fstat(place->dir, &around) == 0 && around.st_dev != target.st_dev)
        return err_os(err, EBUSY, "%s is a mount point: it cannot be replaced", place->path);
    int rc = entries_of(place, &entries, err);
    if (!rc && entries)
        rc = err_os(err, ENOTEMPTY, "%s: a new or an empty directory is wanted", place->path);
    if (!rc)
        *ret_mode = target.st_mode & 07777;
    return rc;
}

/* Without the slashes at its end. */
static int open_place(const char *path, struct place *place, struct ckpt_err *err) {
    char *copy = strdup(path);
    if (!copy)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    for (size_t len = strlen(copy); len > 1 && copy[len - 1] == '/';)
        copy[--len] = '\0';
    const char *slash = strrchr(copy, '/'), *name = slash ? slash + 1 : copy;
    int rc = 0;
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        rc = err_set(err, CKPT_E_INVAL, "'%s' cannot be replaced: name a directory in another one", path);
    if (!rc)
        rc = place_open(copy, place, err);
    free(copy);
    return rc;
}

static int begin(struct folder *folder, const char *path, struct ckpt_err *err) {
    const mode_t fresh = (mode_t)-1;
    mode_t mode = fresh;
    int rc = open_place(path, &folder->place, err);
    if (!rc)
        rc = look_at_target(&folder->place, &mode, err);
    if (!rc)
        rc = temporary_directory(&folder->place, &folder->temporary, err);
    folder->mode = mode == fresh ? folder->temporary.mode : mode;
    return rc;
}

int folder_begin(const char *path, struct folder **ret_folder, struct ckpt_err *err) {
    struct folder *folder = calloc(1, sizeof *folder);
    if (!folder)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    folder->temporary.fd = folder->place.dir = -1;
    int rc = begin(folder, path, err);
    if (rc)
        folder_abandon(folder);
    else
        *ret_folder = folder;
    return rc;
}

/* ---- filling ------------------------------------------------------------------------------------------- */

int folder_mkdir(struct folder *folder, const char *path, struct ckpt_err *err) {
    if (mkdirat(folder->temporary.fd, path, 0777) != 0 && errno != EEXIST)
        return err_os(err, errno, "%s/%s: make directory", folder->place.path, path);
    return 0;
}

int folder_create(struct folder *folder, const char *path, int *ret_fd, struct ckpt_err *err) {
    int fd = openat(folder->temporary.fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_os(err, errno, "%s/%s: create", folder->place.path, path);
    *ret_fd = fd;
    return 0;
}

int folder_remove(struct folder *folder, const char *path, struct ckpt_err *err) {
    if (unlinkat(folder->temporary.fd, path, 0) != 0)
        return err_os(err, errno, "%s/%s: remove", folder->place.path, path);
    return 0;
}

int folder_times(
    struct folder *folder, const char *path, const struct timespec times[2], struct ckpt_err *err) {
    int rc = *path ? utimensat(folder->temporary.fd, path, times, AT_SYMLINK_NOFOLLOW)
                   : futimens(folder->temporary.fd, times);
    return rc == 0 ? 0 : err_os(err, errno, "%s/%s: set its times", folder->place.path, path);
}

/* ---- ending -------------------------------------------------------------------------------------------- */

int folder_commit(struct folder *folder, struct ckpt_err *err) {
    const struct place *place = &folder->place;
    int rc = 0;
    if (fchmod(folder->temporary.fd, folder->mode) != 0)
        rc = err_os(err, errno, "%s: its mode cannot be %04o", place->path, (unsigned)folder->mode);
    /* the whole file system at once: a flush for each of 20,000 files would take minutes on a disk */
    else if (syncfs(folder->temporary.fd) != 0)
        rc = err_os(err, errno, "%s: flush to disk", place->path);
    else if (renameat(place->dir, folder->temporary.name, place->dir, place->name) != 0)
        rc = err_os(err, errno, "%s: rename to it", place->path);
    if (rc) {
        folder_abandon(folder);
        return rc;
    }
    rc = place_flush(place, err);
    end(folder);
    return rc;
}
