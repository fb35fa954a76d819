/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/own.h"

#include "fuse/front.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct own own_find(const char *path) {
    struct statx info;
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_MNT_ID, &info) < 0)
        return (struct own){0};
    /* An older kernel does not tell the mount; the device alone tells most. */
    return (struct own){
        .device = makedev(info.stx_dev_major, info.stx_dev_minor),
        .id = info.stx_mask & STATX_MNT_ID ? info.stx_mnt_id : 0,
    };
}

bool own_is_at(const struct own *own, const char *path) {
    struct own there = own_find(path);
    return !own->device || (there.device == own->device && there.id == own->id);
}

bool own_is_bare(const struct own *own) {
    FILE *mounts = own->id ? fopen("/proc/self/mountinfo", "re") : NULL;
    char *line = NULL;
    size_t cap = 0;
    unsigned long long id, parent;
    bool listed = false, covered = false;
    if (!mounts)
        return true;
    while (getline(&line, &cap, mounts) >= 0) {
        if (sscanf(line, "%llu %llu", &id, &parent) != 2)
            continue;
        listed = listed || id == own->id;
        covered = covered || parent == own->id;
    }
    free(line);
    fclose(mounts);
    return listed && !covered;
}

static bool is_gone(int device) {
    struct pollfd state = {.fd = device};
    return device < 0 || (poll(&state, 1, 0) == 1 && (state.revents & POLLERR));
}

/* libfuse unmounts whatever is at its path, unless the device reports an error, as that of a mount that is
 * gone does. A pipe without readers does, too; in place of the device it ends the connection. */
static void break_device(int device) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return;
    close(fds[0]);
    dup3(fds[1], device, O_CLOEXEC);
    close(fds[1]);
}

bool own_unmount(const struct own *own, const char *path, struct fuse_session *session) {
    int device = fuse_session_fd(session);
    bool may = is_gone(device) || own_is_at(own, path);
    if (!may)
        break_device(device);
    fuse_session_unmount(session);
    return may;
}
