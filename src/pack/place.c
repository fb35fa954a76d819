/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel */

/* Reads the symbolic link at *path and makes *path what it names; false when it is none. */
static bool follow(char **path, int *ret_errno) {
    char target[PATH_MAX];
    ssize_t len = readlink(*path, target, sizeof target - 1);
    *ret_errno = 0;
    if (len < 0)
        return false;
    target[len] = '\0';
    const char *slash = strrchr(*path, '/');
    size_t above = target[0] == '/' || !slash ? 0 : (size_t)(slash - *path) + 1;
    char *next = malloc(above + (size_t)len + 1);
    if (!next) {
        *ret_errno = ENOMEM;
        return false;
    }
    memcpy(next, *path, above);
    memcpy(next + above, target, (size_t)len + 1);
    free(*path);
    *path = next;
    return true;
}

/* What the links at the path's end lead to; it need not exist. */
static int resolve(const char *path, char **ret_path, struct ckpt_err *err) {
    char *at = strdup(path);
    int refused = 0, links = 0;
    if (!at)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    while (links < LINKS_MAX && follow(&at, &refused))
        links++;
    if (!refused && links == LINKS_MAX)
        refused = ELOOP;
    if (refused) {
        free(at);
        return err_os(err, refused, "%s", path);
    }
    *ret_path = at;
    return 0;
}

/* Makes every directory of the path that is missing; `path` is written to and restored. */
static int make_parents(char *path, const char *shown, struct ckpt_err *err) {
    for (char *slash = path + strspn(path, "/"); (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        int refused = mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno;
        struct stat there;
        if (refused && stat(path, &there) == 0) /* of a read-only file system, say */
            refused = 0;
        int rc = refused ? err_os(err, refused, "%s: make directory %s", shown, path) : 0;
        *slash = '/';
        if (rc)
            return rc;
    }
    return 0;
}

/* Splits `path` (which is written to) into directory and name. */
static int split(char *path, struct place *place, struct ckpt_err *err) {
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return err_set(err, CKPT_E_INVAL, "'%s' names no file", place->path);
    int rc = make_parents(path, place->path, err);
    if (rc)
        return rc;
    place->name = strdup(name);
    if (!place->name)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", place->path);
    if (slash)
        *slash = '\0';
    const char *dir = !slash ? "." : *path ? path : "/";
    place->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return place->dir >= 0 ? 0 : err_os(err, errno, "%s: open directory %s", place->path, dir);
}

int place_open(const char *path, struct place *ret_place, struct ckpt_err *err) {
    struct place place = {.path = strdup(path), .dir = -1};
    char *real = NULL;
    int rc = place.path ? resolve(path, &real, err) : err_set(err, CKPT_E_NOMEM, "%s: no memory", path);
    if (!rc)
        rc = split(real, &place, err);
    free(real);
    if (rc)
        place_close(&place);
    else
        *ret_place = place;
    return rc;
}

int place_flush(const struct place *place, struct ckpt_err *err) {
    if (fsync(place->dir) != 0 && errno != EINVAL) /* some file systems cannot, and need not */
        return err_os(err, errno, "%s: it is complete, but flushing its directory failed", place->path);
    return 0;
}

void place_close(struct place *place) {
    if (place->dir >= 0)
        close(place->dir);
    free(place->path);
    free(place->name);
    *place = (struct place){.dir = -1};
}
