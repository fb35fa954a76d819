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

/* Makes every directory of the path that is missing, and counts those; `path` is written to, and restored
 * unless it fails. */
static int make_parents(char *path, struct place *place, struct ckpt_err *err) {
    for (char *slash = path + strspn(path, "/"); (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        bool made = mkdir(path, 0777) == 0;
        int refused = made || errno == EEXIST ? 0 : errno;
        struct stat there;
        if (refused && stat(path, &there) == 0) /* of a read-only file system, say */
            refused = 0;
        place->levels += made;
        int rc = refused ? err_os(err, refused, "%s: make directory %s", place->path, path) : 0;
        if (rc && place->levels) {
            *strrchr(path, '/') = '\0';
            place->parents = realpath(path, NULL);
        }
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
    if (!strcmp(path, "-"))
        return err_set(err, CKPT_E_INVAL,
            "'-': nothing is written to standard output, since it could not be taken back ('./-' is a file)");
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return err_set(err, CKPT_E_INVAL, "'%s' names no file", place->path);
    int rc = make_parents(path, place, err);
    if (rc)
        return rc;
    place->name = strdup(name);
    if (slash)
        *slash = '\0';
    const char *dir = !slash ? "." : *path ? path : "/";
    place->parents =
        place->levels ? realpath(dir, NULL) : NULL; /* whatever becomes of the working directory */
    if (!place->name || (place->levels && !place->parents))
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", place->path);
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
    if (rc) {
        place_undo(&place);
        place_close(&place);
    } else {
        *ret_place = place;
    }
    return rc;
}

/* ---- directories that were made ------------------------------------------------------------------------ */

/* Cuts `path` down to the directory above; "." above a name alone. */
static void go_up(char *path) {
    char *slash = strrchr(path, '/');
    while (slash > path && slash[-1] == '/')
        slash--;
    if (slash)
        slash[slash == path] = '\0';
    else
        strcpy(path, ".");
}

void place_undo(struct place *place) {
    for (; place->parents && place->levels && rmdir(place->parents) == 0; place->levels--)
        go_up(place->parents);
}

static int flush(int dir) {
    return fsync(dir) != 0 && errno != EINVAL ? errno : 0; /* some file systems cannot, and need not */
}

static int flush_path(const char *path) {
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int refused = dir < 0 ? errno : flush(dir);
    if (dir >= 0)
        close(dir);
    return refused;
}

int place_flush(const struct place *place, struct ckpt_err *err) {
    int refused = flush(place->dir);
    char *above = place->levels ? strdup(place->parents) : NULL;
    if (place->levels && !above)
        refused = ENOMEM;
    for (unsigned level = 0; !refused && level < place->levels; level++) {
        go_up(above);
        refused = flush_path(above);
    }
    free(above);
    return refused
               ? err_os(err, refused, "%s: it is complete, but flushing its directory failed", place->path)
               : 0;
}

void place_close(struct place *place) {
    if (place->dir >= 0)
        close(place->dir);
    free(place->path);
    free(place->name);
    free(place->parents);
    *place = (struct place){.dir = -1};
}
