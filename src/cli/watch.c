/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL 0.1 /* seconds between two drawings */

static volatile sig_atomic_t caught; /* a handler can reach nothing else */

static void catch (int number) {
    caught = number;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool asked(void *arg) {
    (void)arg;
    return caught != 0;
}

static void tell(void *arg, uint64_t done, uint64_t total) {
    watch_tell(arg, done, total);
}

static void catch_signal(int number) {
    struct sigaction was, action = {.sa_handler = catch};
    sigemptyset(&action.sa_mask);
    /* no SA_RESTART: a blocked write has to return; a signal that the parent ignores (nohup) stays ignored */
    if (sigaction(number, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void watch_start(struct watch *watch, bool quiet) {
    *watch = (struct watch){
        .cancel = {asked, watch},
        .progress = {tell, watch},
        .shows = !quiet && isatty(STDERR_FILENO),
        .began = now(),
    };
    catch_signal(SIGINT);
    catch_signal(SIGTERM);
}

void watch_tell(struct watch *watch, uint64_t done, uint64_t total) {
    double at = now();
    if (!watch->shows || total == 0 || (watch->drawn && at - watch->last < INTERVAL))
        return;
    watch->last = at;
    watch->drawn = true;
    double seconds = at - watch->began;
    fprintf(stderr, "\r%5.1f %%", 100 * (double)done / (double)total);
    if (seconds > 0)
        fprintf(stderr, "  %.2f GB/s", (double)done / seconds / 1e9);
    fputs("\033[K", stderr);
}

void watch_erase(struct watch *watch) {
    if (watch->drawn)
        fputs("\r\033[K", stderr);
    watch->drawn = false;
}

void watch_stop(struct watch *watch) {
    watch_erase(watch);
    watch->shows = false;
}

double watch_seconds(const struct watch *watch) {
    return now() - watch->began;
}

int watch_exit(int code) {
    return caught ? EXIT_SIGNAL + caught : code;
}
