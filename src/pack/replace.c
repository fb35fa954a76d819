/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/replace.h"

#include "pack/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct replace {
    struct place place; /* of the target */
    struct temporary temporary;
    mode_t mode; /* that the target gets */
};

int replace_fd(const struct replace *replace) {
    return replace->temporary.fd;
}

static void end(struct replace *replace) {
    if (replace->temporary.fd >= 0)
        close(replace->temporary.fd);
    place_close(&replace->place);
    free(replace);
}

void replace_abandon(struct replace *replace) {
    if (!replace)
        return;
    if (replace->temporary.fd >= 0)
        (void)unlinkat(replace->place.dir, replace->temporary.name, 0);
    place_undo(&replace->place);
    end(replace);
}

/* The mode of the file that is replaced; *ret_mode stays as it is when there is none. */
static int look_at_target(const struct place *place, mode_t *ret_mode, struct ckpt_err *err) {
    struct stat target;
    if (fstatat(place->dir, place->name, &target, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_os(err, errno, "%s", place->path);
    if (S_ISDIR(target.st_mode))
        return err_os(err, EISDIR, "%s", place->path);
    if (!S_ISREG(target.st_mode))
        return err_os(err, EINVAL, "%s is no regular file: it cannot be replaced", place->path);
    *ret_mode = target.st_mode & 07777;
    return 0;
}

static int begin(struct replace *replace, const char *path, struct ckpt_err *err) {
    const mode_t fresh = (mode_t)-1;
    mode_t mode = fresh;
    int rc = place_open(path, &replace->place, err);
    if (!rc)
        rc = look_at_target(&replace->place, &mode, err);
    if (!rc)
        rc = temporary_file(&replace->place, &replace->temporary, err);
    replace->mode = mode == fresh ? replace->temporary.mode : mode;
    return rc;
}

int replace_begin(const char *path, struct replace **ret_replace, struct ckpt_err *err) {
    struct replace *replace = calloc(1, sizeof *replace);
    if (!replace)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    replace->temporary.fd = -1;
    replace->place.dir = -1;
    int rc = begin(replace, path, err);
    if (rc)
        replace_abandon(replace);
    else
        *ret_replace = replace;
    return rc;
}

/* Everything that can fail before the target changes. */
static int flush(const struct replace *replace, struct ckpt_err *err) {
    int fd = replace->temporary.fd;
    if (fchmod(fd, replace->mode) != 0)
        return err_os(
            err, errno, "%s: its mode cannot be %04o", replace->place.path, (unsigned)replace->mode);
    if (fsync(fd) != 0)
        return err_os(err, errno, "%s: flush to disk", replace->place.path);
    return 0;
}

static int take_its_place(const struct replace *replace, struct ckpt_err *err) {
    const struct place *place = &replace->place;
    if (renameat(place->dir, replace->temporary.name, place->dir, place->name) != 0)
        return err_os(err, errno, "%s: rename over it", place->path);
    return 0;
}

int replace_commit(struct replace *replace, struct ckpt_err *err) {
    int rc = flush(replace, err);
    if (!rc)
        rc = take_its_place(replace, err);
    if (rc) {
        replace_abandon(replace);
        return rc;
    }
    rc = place_flush(&replace->place, err);
    end(replace);
    return rc;
}
