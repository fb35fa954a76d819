/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t read_limit(const char *folder, const char *group, const char *file) {
    char path[4352];
    uint64_t limit;
    snprintf(path, sizeof path, "%s%s/%s", folder, group, file);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return UINT64_MAX;
    if (fscanf(stream, "%" SCNu64, &limit) != 1) /* "max" */
        limit = UINT64_MAX;
    fclose(stream);
    return limit;
}

/* A group's limit holds for all below it. group is cut down to "", which in a container may be our own. */
static uint64_t smallest(const char *folder, char *group, const char *file) {
    uint64_t limit = UINT64_MAX;
    for (;;) {
        uint64_t here = read_limit(folder, group, file);
        limit = here < limit ? here : limit;
        char *slash = strrchr(group, '/');
        if (!slash)
            return limit;
        *slash = '\0';
    }
}

/* A line is "ID:CONTROLLERS:GROUP"; v2 has no controllers there. */
static uint64_t limit_of_line(char *line) {
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (controllers[1] == '\0')
        return smallest("/sys/fs/cgroup", group, "memory.max");
    if (strcmp(controllers + 1, "memory") == 0)
        return smallest("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    return UINT64_MAX;
}

uint64_t memory_limit(void) {
    FILE *groups = fopen("/proc/self/cgroup", "re");
    char *line = NULL;
    size_t cap = 0;
    uint64_t limit = UINT64_MAX;
    while (groups && getline(&line, &cap, groups) >= 0) {
        uint64_t here = limit_of_line(line);
        limit = here < limit ? here : limit;
    }
    free(line);
    if (groups)
        fclose(groups);
    return limit;
}
