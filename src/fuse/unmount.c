/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/unmount.h"

#include "fuse/log.h"
#include "fuse/mount.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file system as /proc names it. */
struct device {
    unsigned major, minor;
};

static bool same(struct device a, struct device b) {
    return a.major == b.major && a.minor == b.minor;
}

/* Never asks the daemon, which may hang or be dead. *ret_root: whether path is where it is mounted. */
static bool device_of(int dir, const char *path, struct device *ret_device, bool *ret_root) {
    struct statx info;
    if (statx(dir, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &info) < 0)
        return false;
    *ret_device = (struct device){info.stx_dev_major, info.stx_dev_minor};
    if (ret_root)
        *ret_root = info.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    return true;
}

/* ---- who holds it ------------------------------------------------------------------------------------ */

static bool maps_hold(int proc, struct device device) {
    int fd = openat(proc, "maps", O_RDONLY | O_CLOEXEC);
    FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
    char *line = NULL;
    size_t cap = 0;
    bool held = false;
    struct device mapped;
    while (maps && !held && getline(&line, &cap, maps) >= 0)
        held = sscanf(line, "%*s %*s %*s %x:%x", &mapped.major, &mapped.minor) == 2 && same(mapped, device);
    free(line);
    if (maps)
        fclose(maps);
    else if (fd >= 0)
        close(fd);
    return held;
}

static bool files_hold(int proc, struct device device) {
    int fd = openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    struct device opened;
    bool held = false;
    while (files && !held && (entry = readdir(files)))
        held = isdigit((unsigned char)entry->d_name[0]) &&
               device_of(dirfd(files), entry->d_name, &opened, NULL) && same(opened, device);
    if (files)
        closedir(files);
    else if (fd >= 0)
        close(fd);
    return held;
}

static bool process_holds(int proc, struct device device) {
    static const char *const links[] = {"cwd", "root", "exe"};
    struct device at;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        if (device_of(proc, links[i], &at, NULL) && same(at, device))
            return true;
    return files_hold(proc, device) || maps_hold(proc, device);
}

static void say_command(int proc, const char *pid, const char *given) {
    char command[64] = "";
    int fd = openat(proc, "comm", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, command, sizeof command - 1);
    if (fd >= 0)
        close(fd);
    command[len > 0 ? len - 1 : 0] = '\0'; /* its newline */
    complain(0, given, "held by process %s (%s)", pid, command);
}

/* What we have inherited is closed when we exit. */
static bool is_self(int all, const char *pid) {
    char self[32];
    ssize_t len = readlinkat(all, "self", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    return strcmp(self, pid) == 0;
}

static void say_holders(const char *given, struct device device) {
    DIR *all = opendir("/proc");
    struct dirent *entry;
    while (all && (entry = readdir(all))) {
        if (!isdigit((unsigned char)entry->d_name[0]) || is_self(dirfd(all), entry->d_name))
            continue;
        int proc = openat(dirfd(all), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (proc >= 0 && process_holds(proc, device))
            say_command(proc, entry->d_name, given);
        if (proc >= 0)
            close(proc);
    }
    if (all)
        closedir(all);
}

/* ---- unmounting -------------------------------------------------------------------------------------- */

/* Nobody should lose a disk by a wrong name, least of all lazily. */
static bool is_fuse(struct device device) {
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t cap = 0;
    bool found = false;
    struct device mounted;
    while (mounts && !found && getline(&line, &cap, mounts) >= 0)
        found = sscanf(line, "%*u %*u %u:%u", &mounted.major, &mounted.minor) == 2 && same(mounted, device) &&
                strstr(line, " - fuse");
    free(line);
    if (mounts)
        fclose(mounts);
    return found;
}

static int unmount_path(const char *given, const char *path) {
    struct device device;
    bool root = false;
    if (!device_of(AT_FDCWD, path, &device, &root))
        return complain(EXIT_SYSTEM, given, "%s", strerror(errno));
    if (!root || !is_fuse(device))
        return complain(EXIT_SYSTEM, given, "no checkpoint is mounted there");
    if (mount_detach(path, false) == 0)
        return EXIT_FINE;
    if (errno != EBUSY)
        return complain(EXIT_SYSTEM, given, "cannot unmount: %s", strerror(errno));
    say_holders(given, device);
    if (mount_detach(path, true) < 0)
        return complain(EXIT_SYSTEM, given, "cannot unmount: %s", strerror(errno));
    return complain(EXIT_FINE, given, "was busy: detached, and gone once nobody holds it");
}

int unmount_by_hand(const char *given) {
    char *path;
    int rc = mount_is_foreign(given) ? complain(EXIT_USAGE, given, "only its mounter can unmount it")
                                     : mount_find(given, &path);
    if (rc != EXIT_FINE)
        return rc;
    rc = unmount_path(given, path);
    free(path);
    return rc;
}
