/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of the benchmarks: reads without a buffer of its own growing or a loop in a script getting in
 * the way.
 *
 *   reader seq FILE [BLOCK]                the whole file from its start, 128 KiB at a time as cat does
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

static void *reserve(size_t len) {
    void *buffer = aligned_alloc(PAGE, (len + PAGE - 1) / PAGE * PAGE);
    if (!buffer)
        fail("buffer");
    memset(buffer, 1, len); /* its pages are there before the clock runs */
    return buffer;
}

static uint64_t read_all(const char *path, size_t block, void *buffer) {
    uint64_t size, done = 0;
    ssize_t got;
    int fd = open_file(path, &size);
    while ((got = read(fd, buffer, block)) > 0)
        done += (uint64_t)got;
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

static uint64_t run_random(struct random_reads *list, uint64_t threads) {
    uint64_t done = 0;
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

static uint64_t read_rows(const char *path, uint64_t count, void *buffer) {
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

static double slowest_byte(char **paths) {
    double slowest = 0;
    for (; *paths; paths++) {
        uint8_t byte;
        uint64_t size;
        double start = seconds_of(CLOCK_MONOTONIC);
        int fd = open_file(*paths, &size);
        if (pread(fd, &byte, 1, 0) != 1)
            fail(*paths);
        double took = seconds_of(CLOCK_MONOTONIC) - start;
        slowest = took > slowest ? took : slowest;
        close(fd);
    }
    return slowest;
}

/* ---- the command line -------------------------------------------------------------------------------- */

static struct random_reads *prepare_random(char **argv, uint64_t threads) {
    struct random_reads *list = calloc(threads, sizeof *list);
    if (!list)
        fail("threads");
    for (uint64_t i = 0; i < threads; i++) {
        list[i] = (struct random_reads){
            .path = argv[2], .block = number(argv[4]), .count = number(argv[5]), .seed = i + 1};
        list[i].buffer = reserve(list[i].block);
    }
    return list;
}

static int usage(const char *program) {
    fprintf(stderr,
        "usage: %s seq FILE [BLOCK] | random FILE THREADS BLOCK COUNT | rows FILE COUNT | byte FILE...\n",
        program);
    return EXIT_FAILURE;
}

int main(int argc, char **argv) {
    const char *mode = argc > 2 ? argv[1] : "";
    bool seq = strcmp(mode, "seq") == 0 && argc <= 4, rows = strcmp(mode, "rows") == 0 && argc == 4;
    bool random = strcmp(mode, "random") == 0 && argc == 6;
    uint64_t threads = random ? number(argv[3]) : 0, done = 0;
    if (strcmp(mode, "byte") == 0) {
        printf("%.9f 0 1\n", slowest_byte(argv + 2));
        return EXIT_SUCCESS;
    }
    if (!(seq || rows || (random && threads > 0 && threads <= THREADS_MAX)))
        return usage(argv[0]);
    size_t block = seq && argc == 4 ? number(argv[3]) : CAT_BLOCK;
    void *buffer = reserve(block);
    struct random_reads *list = random ? prepare_random(argv, threads) : NULL;
    double start = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    if (seq)
        done = read_all(argv[2], block, buffer);
    else if (rows)
        done = read_rows(argv[2], number(argv[3]), buffer);
    else
        done = run_random(list, threads);
    printf("%.9f %.9f %llu\n", seconds_of(CLOCK_MONOTONIC) - start,
        seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu, (unsigned long long)done);
    return EXIT_SUCCESS; /* the system takes the buffers back */
}
