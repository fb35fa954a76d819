/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that go wrong on request. */
#include "standin.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_MAX 1024

/* How often each call was made; calls are few, so a list will do. */
static struct count {
    const char *call;
    unsigned times;
} counts[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned count(const char *call) {
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (counts[i].call && strcmp(counts[i].call, call))
        i++;
    counts[i].call = call;
    unsigned times = ++counts[i].times;
    pthread_mutex_unlock(&lock);
    return times;
}

static void read_list(char list[LIST_MAX]) {
    const char *given = getenv("CKPTFS_STANDIN_FAIL");
    *list = '\0';
    if (given && *given != '@')
        snprintf(list, LIST_MAX, "%s", given);
    if (!given || *given != '@')
        return;
    int fd = open(given + 1, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, list, LIST_MAX - 1);
    list[len > 0 ? len : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

static cuda_result go_wrong(const char *what) {
    if (!strncmp(what, "die", 3))
        _exit(9);
    while (!strncmp(what, "hang", 4))
        pause();
    return atoi(what);
}

cuda_result standin_enter(const char *call) {
    char list[LIST_MAX], *rest = NULL, what[32], name[64];
    unsigned times = count(call), wanted;
    read_list(list);
    for (char *item = strtok_r(list, ",\n", &rest); item; item = strtok_r(NULL, ",\n", &rest))
        if (sscanf(item, "%63[^:]:%u:%31s", name, &wanted, what) == 3 && !strcmp(name, call) &&
            (wanted == 0 || wanted == times))
            return go_wrong(what);
    return 0;
}
