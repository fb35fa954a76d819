/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of the benchmarks: reads without a buffer of its own growing or a loop in a script getting in
 * the way.
 *
 *   reader seq FILE                        the whole file from its start, 128 KiB at a time as cat does
 *   reader stream FILE                     the same, dropping from the page cache what lies behind
 *   reader random FILE THREADS BLOCK COUNT COUNT reads a thread, at random multiples of 4 KiB
 *   reader rows FILE COUNT                 COUNT random rows of 4 to 16 KiB, copied out of a mapping of the
 * file reader byte FILE...                    the first byte of each file; prints the slowest one's seconds
 *
 * Prints "SECONDS CPU_SECONDS BYTES": wall-clock time from open to close, CPU time of this process in it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CAT_BLOCK ((size_t)128 << 10)
#define DROP_BYTES ((uint64_t)64 << 20)
#define PAGE ((uint64_t)4096)
#define ROW_MIN ((size_t)4 << 10)
#define ROW_MAX ((size_t)16 << 10)
#define THREADS_MAX 256

static void fail(const char *what) {
    perror(what);
    exit(EXIT_FAILURE);
}

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t number(const char *text) {
    return strtoull(text, NULL, 10);
}

/* The same places in every run: candidates are asked for the same bytes. */
static uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

static int open_file(const char *path, uint64_t *ret_size) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        fail(path);
    *ret_size = (uint64_t)st.st_size;
    return fd;
}

static uint8_t buffer[CAT_BLOCK]; /* rows are shorter */

static uint64_t read_all(const char *path, bool drop) {
    uint64_t size, done = 0, kept = 0;
    ssize_t got;
    int fd = open_file(path, &size);
    while ((got = read(fd, buffer, sizeof buffer)) > 0) {
        done += (uint64_t)got;
        if (!drop || done - kept < DROP_BYTES)
            continue;
        (void)posix_fadvise(fd, 0, (off_t)done, POSIX_FADV_DONTNEED);
        kept = done;
    }
    if (got < 0)
        fail(path);
    close(fd);
    return done;
}

/* ---- random reads ------------------------------------------------------------------------------------ */

struct random_reads {
    pthread_t thread;
    const char *path;
    size_t block;
    uint64_t count, seed, done;
    void *buffer;
};

static void *read_random(void *arg) {
    struct random_reads *reads = arg;
    uint64_t size, state = reads->seed;
    int fd = open_file(reads->path, &size);
    uint64_t places = size > reads->block ? (size - reads->block) / PAGE + 1 : 1;
    for (uint64_t i = 0; i < reads->count; i++) {
        ssize_t got = pread(fd, reads->buffer, reads->block, (off_t)(draw(&state) % places * PAGE));
        if (got < 0)
            fail(reads->path);
        reads->done += (uint64_t)got;
    }
    close(fd);
    return NULL;
}

static struct random_reads list[THREADS_MAX];

/* The buffers' pages are there before the clock runs. */
static bool prepare_random(char **args) {
    uint64_t threads = number(args[1]), block = number(args[2]);
    if (threads > THREADS_MAX)
        return false;
    for (uint64_t i = 0; i < threads; i++) {
        list[i] = (struct random_reads){.path = args[0],
            .block = block,
            .count = number(args[3]),
            .seed = i + 1,
            .buffer = malloc(block)};
        if (!list[i].buffer)
            fail("buffer");
        memset(list[i].buffer, 1, block);
    }
    return true;
}

static uint64_t run_random(char **args) {
    uint64_t threads = number(args[1]), done = 0;
    for (uint64_t i = 0; i < threads; i++)
        if (pthread_create(&list[i].thread, NULL, read_random, &list[i]) != 0)
            fail("thread");
    for (uint64_t i = 0; i < threads; i++) {
        pthread_join(list[i].thread, NULL);
        done += list[i].done;
    }
    return done;
}

/* ---- rows of a mapping ------------------------------------------------------------------------------- */

static uint64_t read_rows(const char *path, uint64_t count) {
    uint64_t size, state = 1, done = 0;
    int fd = open_file(path, &size);
    if (size < ROW_MAX) {
        fprintf(stderr, "%s: has no row of %zu bytes\n", path, ROW_MAX);
        exit(EXIT_FAILURE);
    }
    const uint8_t *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        fail(path);
    for (uint64_t i = 0; i < count; i++) {
        size_t len = ROW_MIN + draw(&state) % (ROW_MAX - ROW_MIN + 1);
        memcpy(buffer, bytes + draw(&state) % (size - len + 1), len);
        done += len;
    }
    munmap((void *)(uintptr_t)bytes, size);
    close(fd);
    return done;
}

/* ---- first bytes ------------------------------------------------------------------------------------- */

static void read_byte(const char *path) {
    uint64_t size;
    int fd = open_file(path, &size);
    if (pread(fd, buffer, 1, 0) != 1)
        fail(path);
    close(fd);
}

static int print_slowest(char **paths) {
    double slowest = 0;
    for (; *paths; paths++) {
        double start = seconds_of(CLOCK_MONOTONIC);
        read_byte(*paths);
        double took = seconds_of(CLOCK_MONOTONIC) - start;
        slowest = took > slowest ? took : slowest;
    }
    printf("%.9f 0 1\n", slowest);
    return EXIT_SUCCESS;
}

/* ---- the command line -------------------------------------------------------------------------------- */

static uint64_t run_seq(char **args) {
    return read_all(args[0], false);
}

static uint64_t run_stream(char **args) {
    return read_all(args[0], true);
}

static uint64_t run_rows(char **args) {
    return read_rows(args[0], number(args[1]));
}

static const struct mode {
    const char *name;
    int args;
    bool (*prepare)(char **args); /* NULL: nothing to do; false: wrong use */
    uint64_t (*run)(char **args);
} modes[] = {
    {"seq", 1, NULL, run_seq},
    {"stream", 1, NULL, run_stream},
    {"random", 4, prepare_random, run_random},
    {"rows", 2, NULL, run_rows},
};

static const struct mode *find_mode(int argc, char **argv) {
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (argc == modes[i].args + 2 && strcmp(argv[1], modes[i].name) == 0)
            return &modes[i];
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "byte") == 0)
        return print_slowest(argv + 2);
    const struct mode *mode = find_mode(argc, argv);
    if (!mode || (mode->prepare && !mode->prepare(argv + 2))) {
        fprintf(stderr,
            "usage: %s seq FILE | stream FILE | random FILE THREADS BLOCK COUNT | rows FILE COUNT |"
            " byte FILE...\n",
            argv[0]);
        return EXIT_FAILURE;
    }
    memset(buffer, 1, sizeof buffer);
    double start = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t done = mode->run(argv + 2);
    printf("%.9f %.9f %llu\n", seconds_of(CLOCK_MONOTONIC) - start,
        seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu, (unsigned long long)done);
    return EXIT_SUCCESS; /* the system takes the buffers back */
}
