/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ckptfs: mounts a checkpoint. Open and validate, mount, go into the background, start threads, answer: what
 * can fail has failed before the caller is told that the mount is up.
 */
#include "fuse/log.h"
#include "fuse/memory.h"
#include "fuse/mount.h"
#include "fuse/ops.h"
#include "fuse/options.h"
#include "fuse/unmount.h"
#include "fuse/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A reader that waits for a digest holds a thread, and must not keep the others waiting. */
#define THREADS_MAX 1024
#define THREADS_IDLE 8
#define MEMORY_DEFAULT ((uint64_t)64 << 20)

static struct log the_log = {.fd = -1}; /* libfuse's messages come without an argument */

/* ---- messages ---------------------------------------------------------------------------------------- */

/* Why a mount failed belongs on the terminal. */
static void say_fuse(enum fuse_log_level level, const char *fmt, va_list args) {
    char line[1024];
    if (level >= FUSE_LOG_DEBUG) {
        vfprintf(stderr, fmt, args);
        return;
    }
    vsnprintf(line, sizeof line, fmt, args);
    line[strcspn(line, "\n")] = '\0';
    if (atomic_load(&the_log.up))
        log_say(&the_log, line);
    else
        complain(0, NULL, "%s", line);
}

static void show_progress(void *arg, uint64_t done, uint64_t total) {
    int *shown = arg;
    int percent = total ? (int)((double)done / (double)total * 100) : 100;
    if (percent == *shown)
        return;
    *shown = percent;
    fprintf(stderr, "\r" PROGRAM ": verifying: %d %%%s", percent, percent >= 100 ? "\n" : "");
}

static int exit_code_of(const struct ckpt_err *err) {
    switch (err->code) {
    case CKPT_E_INVAL:
        return EXIT_USAGE;
    case CKPT_E_FORMAT:
    case CKPT_E_CORRUPT:
    case CKPT_E_MISMATCH:
    case CKPT_E_CHANGED:
        return EXIT_CHECKPOINT;
    default:
        return EXIT_SYSTEM;
    }
}

/* What the daemon may use: half of it is for verified blocks, a quarter for replies, the rest for passes and
 * what there is besides. Of a small container only a part is for us; the rest is for the programs that read.
 */
static uint64_t memory_bytes(const struct options *options) {
    uint64_t wanted = options->cache ? options->cache : MEMORY_DEFAULT;
    uint64_t allowed = memory_limit() / 4;
    return wanted < allowed ? wanted : allowed;
}

/* ---- steps ------------------------------------------------------------------------------------------- */

/* Something else than a file is no bad checkpoint. */
static int check_kind(const char *source) {
    struct stat info;
    if (stat(source, &info) < 0 || S_ISREG(info.st_mode))
        return EXIT_FINE;
    return complain(EXIT_SYSTEM, source, S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file");
}

/* For tests, and for who has the helper elsewhere. */
static unsigned seconds_of(const char *variable) {
    const char *text = getenv(variable);
    unsigned long seconds = text ? strtoul(text, NULL, 10) : 0;
    return seconds > INT_MAX / 1000 ? INT_MAX / 1000 : (unsigned)seconds;
}

static struct ckpt_gpu_options gpu_options(const struct options *options) {
    return (struct ckpt_gpu_options){
        .device = options->gpu_device,
        .tensors = options->gpu_tensors,
        .limited = options->gpu_budget != OPTION_UNSET,
        .budget = options->gpu_budget,
        .dtype = (enum ckpt_gpu_dtype)options->gpu_dtype,
        .share = (enum ckpt_gpu_share)options->gpu_share,
        .helper = getenv("CKPTFS_GPU_HELPER"),
        .sockets = getenv("XDG_RUNTIME_DIR"),
        .start_seconds = seconds_of("CKPTFS_GPU_START_SECONDS"),
        .reply_seconds = seconds_of("CKPTFS_GPU_REPLY_SECONDS"),
    };
}

static int open_checkpoint(const struct options *options, struct ckpt **ret_ckpt) {
    const struct ckpt_gpu_options gpu = gpu_options(options);
    int shown = -1;
    const struct ckpt_progress progress = {.tell = show_progress, .arg = &shown};
    const struct ckpt_options opt = {
        .verify = (enum ckpt_verify_mode)options->verify,
        .contract = options->contract,
        .manifest = options->manifest,
        .cache_bytes = memory_bytes(options) / 2 + 1, /* 0 would mean the default */
        .gpu = options->gpu ? &gpu : NULL,
        .log = {.say = log_say, .arg = &the_log, .redact = options->redact},
        .progress = options->verify == CKPT_VERIFY_FULL && isatty(STDERR_FILENO) ? &progress : NULL,
    };
    struct ckpt_err err;
    the_log.mute = options->verify == CKPT_VERIFY_FULL; /* the first fault is the error */
    int rc = ckpt_open(options->source, &opt, ret_ckpt, &err);
    the_log.mute = false;
    if (shown >= 0 && shown < 100)
        fprintf(stderr, "\n");
    if (rc != 0)
        return complain(exit_code_of(&err), options->source, "%s", err.msg);
    return EXIT_FINE;
}

static int answer_requests(struct fuse_session *session, bool single) {
    if (single)
        return fuse_session_loop(session);
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    if (!config)
        return -ENOMEM;
    fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
    fuse_loop_cfg_set_idle_threads(config, THREADS_IDLE);
    int rc = fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
    return rc;
}

/* -1 is libfuse's own: it has said what kept its threads from starting. */
static void say_end(int rc) {
    char text[128];
    snprintf(text, sizeof text, "cannot serve: %s", rc == -1 ? "the FUSE loop failed" : strerror(-rc));
    log_say(&the_log, text);
}

/* Until it is unmounted or a signal asks to stop; both are a good end. */
static int answer_and_watch(struct watch *watch) {
    struct front *front = watch->front;
    int rc = answer_requests(front->session, watch->options->single);
    watch_stop(watch);
    if (!own_unmount(&watch->own, watch->path, front->session))
        log_say(&the_log, "something else is at the mount point now: ended, but not unmounted");
    watch_join(watch);
    if (rc < 0)
        say_end(rc);
    else if (!atomic_load(&watch->caller->told))
        rc = complain(-1, watch->options->source, "the mount ended before it was up");
    return rc < 0 ? EXIT_SYSTEM : EXIT_FINE;
}

/* Signals are for the main thread: the loop there notices by being interrupted. */
static int start_threads(struct watch *watch) {
    sigset_t all, before;
    struct ckpt_err err;
    int rc = EXIT_FINE;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (ckpt_start(watch->front->ckpt, &err) != 0)
        rc = complain(exit_code_of(&err), watch->options->source, "%s", err.msg);
    else if (watch_start(watch) != 0)
        rc = complain(EXIT_SYSTEM, watch->options->source, "cannot start a thread");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static int mount_and_serve(struct watch *watch) {
    int rc = mount_session(watch->front, watch->options, watch->path);
    if (rc != EXIT_FINE)
        return rc;
    if (!mount_is_foreign(watch->path))
        watch->own = own_find(watch->path);
    the_log.daemon = !watch->options->foreground;
    if (!watch->options->foreground)
        rc = caller_leave(watch->caller);
    if (rc == EXIT_FINE)
        rc = start_threads(watch);
    if (rc == EXIT_FINE)
        rc = answer_and_watch(watch);
    mount_end(watch->front);
    return rc;
}

static int mount_checkpoint(const struct options *options, const char *path, struct caller *caller) {
    struct front front = {
        .uid = (uid_t)options->uid,
        .gid = (gid_t)options->gid,
        .mask = (mode_t)options->umask,
        .xattr = options->xattr,
    };
    struct watch watch = {
        .options = options, .front = &front, .log = &the_log, .caller = caller, .path = path};
    struct ckpt *ckpt;
    int rc = check_kind(options->source);
    if (rc == EXIT_FINE)
        rc = open_checkpoint(options, &ckpt);
    if (rc != EXIT_FINE)
        return rc;
    if (front_init(&front, ckpt, memory_bytes(options) / 4) != 0)
        rc = complain(EXIT_SYSTEM, options->source, "no memory");
    else {
        rc = mount_and_serve(&watch);
        ops_close_files(&front);
        front_free(&front);
    }
    ckpt_close(ckpt);
    return rc;
}

/* ---- the program ------------------------------------------------------------------------------------- */

static int mount_with(const struct options *options, struct caller *caller) {
    char *path;
    int rc = mount_find(options->mountpoint, &path);
    if (rc != EXIT_FINE)
        return rc;
    if (options->idle_timeout && mount_is_foreign(path))
        rc = complain(EXIT_USAGE, path, "idle_timeout: only its mounter can unmount it");
    else
        rc = log_open(&the_log, options->log, options->redact ? NULL : options->source, options->quiet);
    if (rc == EXIT_FINE)
        rc = mount_checkpoint(options, path, caller);
    log_close(&the_log);
    free(path);
    return rc;
}

static int print(const struct options *options) {
    if (options->help)
        options_help();
    else
        printf(PROGRAM " %s (libfuse %s)\n", ckpt_version(), fuse_pkgversion());
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_FINE;
    return complain(EXIT_SYSTEM, "standard output", "%s", strerror(errno ? errno : EIO));
}

static int run(const struct options *options, struct caller *caller) {
    if (options->help || options->version)
        return print(options);
    if (options->unmount)
        return unmount_by_hand(options->mountpoint);
    return mount_with(options, caller);
}

int main(int argc, char **argv) {
    struct options options;
    struct caller caller = {.notify_fd = -1, .parent_fd = -1};
    fuse_set_log_func(say_fuse);
    int rc = options_parse(&options, argc, argv);
    caller.source = options.source;
    int met = caller_meet(&caller, options.notify_fd == OPTION_UNSET ? -1 : (int)options.notify_fd);
    if (rc == EXIT_FINE)
        rc = met;
    if (rc == EXIT_FINE)
        rc = run(&options, &caller);
    if (rc != EXIT_FINE)
        caller_tell(&caller, rc);
    options_free(&options);
    return rc;
}
