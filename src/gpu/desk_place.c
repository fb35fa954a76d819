/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/desk_place.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FALLBACK "/tmp"
#define PREFIX "ckptfs-gpu-"
#define SOCKET "socket"
#define UNHEARD "new" /* what the socket is called until it listens */
#define BACKLOG 1024  /* who connects with a timeout is refused when it is full */

static bool join(const char *dir, const char *name, char out[DESK_PATH_MAX]) {
    return snprintf(out, DESK_PATH_MAX, "%s/%s", dir, name) < DESK_PATH_MAX;
}

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    return address;
}

/* ---- what others left -------------------------------------------------------------------------------- */

/* Nobody listens any more: the kernel says so. Sockets are called by that name only once they listen. */
static bool is_dead(const char *path) {
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool dead =
        fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return dead;
}

static void sweep(const char *base) {
    char dir[DESK_PATH_MAX], path[DESK_PATH_MAX];
    struct stat info;
    struct dirent *entry;
    DIR *entries = opendir(base);
    while (entries && (entry = readdir(entries))) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 || !join(base, entry->d_name, dir) ||
            !join(dir, SOCKET, path) || lstat(dir, &info) < 0 || !S_ISDIR(info.st_mode) ||
            info.st_uid != geteuid() || !is_dead(path))
            continue;
        unlink(path);
        rmdir(dir);
    }
    if (entries)
        closedir(entries);
}

/* ---- our own ----------------------------------------------------------------------------------------- */

static bool make_dir(const char *base, struct desk_place *place) {
    if (!join(base, PREFIX "XXXXXX", place->dir) || !join(place->dir, SOCKET, place->path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (!mkdtemp(place->dir)) /* 0700 */
        return false;
    return join(place->dir, SOCKET, place->path);
}

/* Nobody else gets into the directory, so that the mode cannot come too late. */
static int listen_at(struct desk_place *place) {
    char unheard[DESK_PATH_MAX];
    if (!join(place->dir, UNHEARD, unheard))
        return ENAMETOOLONG;
    struct sockaddr_un address = address_of(unheard);
    place->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (place->listener < 0)
        return errno;
    if (bind(place->listener, (struct sockaddr *)&address, sizeof address) == 0 &&
        chmod(unheard, 0600) == 0 && listen(place->listener, BACKLOG) == 0 &&
        rename(unheard, place->path) == 0)
        return 0;
    int failed = errno;
    unlink(unheard);
    close(place->listener);
    return failed;
}

int desk_place_make(const char *base, struct desk_place *ret_place, struct ckpt_err *err) {
    struct desk_place place;
    sweep(base);
    if (!make_dir(base, &place) && !make_dir(FALLBACK, &place))
        return err_os(err, errno, "a directory in %s for the socket of gpu_share=fd", base);
    int failed = listen_at(&place);
    if (failed) {
        rmdir(place.dir);
        return err_os(err, failed, "a socket in %s", place.dir);
    }
    *ret_place = place;
    return 0;
}

void desk_place_remove(struct desk_place *place) {
    close(place->listener);
    unlink(place->path);
    rmdir(place->dir);
}
