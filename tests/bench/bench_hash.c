/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_hash [MIB [ROUNDS]]: the speed of the digests, one figure a line: NAME VALUE UNIT.
 * The candidates take turns in every round, so that a slow spell of the machine hits all of them; a ratio is
 * taken within a round; figures are medians over the rounds. "ratio_serial" is the speed over that of the
 * plain loop.
 */
#include "config.h"

#include "hash/block.h"
#include "hash/cpu.h"
#include "hash/fnv1a.h"
#include "hash/fnv1a_kernel.h"
#include "hash/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS_MAX 99
#define CANDIDATES_MAX 8
#define IN_CACHE ((size_t)256 << 10)
#define IN_CACHE_WORK                                                                                        \
    ((size_t)16 << 20) /* bytes hashed in a round, by going over the buffer again and again */

typedef uint64_t hash_fn(uint64_t h, const void *bytes, size_t len);

struct candidate {
    const char *name, *suffix;
    hash_fn *run;
    double seconds[ROUNDS_MAX], ratio[ROUNDS_MAX];
};

struct bench {
    const uint8_t *bytes;
    size_t len, times;
    int rounds;
    struct candidate list[CANDIDATES_MAX]; /* the first one is what the others are compared with */
    int count;
};

static uint64_t sink; /* keeps the results alive */
static struct block_key key;

static uint64_t serial(uint64_t h, const void *bytes, size_t len) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ at[i]) * FNV1A64_PRIME;
    return h;
}

static uint64_t sha256(uint64_t h, const void *bytes, size_t len) {
    uint8_t digest[HASH_DIGEST_MAX];
    if (hash_bytes(HASH_SHA256, bytes, len, digest, NULL))
        abort();
    return h + digest[0];
}

static uint64_t block(uint64_t h, const void *bytes, size_t len) {
    return h + block_digest(&key, bytes, len);
}

/* The time that this thread ran: other processes may take the CPU in between. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void add(struct bench *bench, const char *name, const char *suffix, hash_fn *run) {
    bench->list[bench->count++] = (struct candidate){.name = name, .suffix = suffix, .run = run};
}

static double measure(const struct bench *bench, hash_fn *run) {
    double start = now();
    for (size_t i = 0; i < bench->times; i++)
        sink += run(FNV1A64_START + i, bench->bytes, bench->len);
    return now() - start;
}

static void go(struct bench *bench) {
    for (int round = -1; round < bench->rounds; round++) /* round -1 warms up */
        for (int i = 0; i < bench->count; i++) {
            struct candidate *candidate = &bench->list[i];
            double seconds = measure(bench, candidate->run);
            if (round < 0)
                continue;
            candidate->seconds[round] = seconds;
            candidate->ratio[round] = bench->list[0].seconds[round] / seconds;
        }
}

static void report(struct bench *bench, const char *where, int rates_only_after) {
    double bytes = (double)bench->len * (double)bench->times;
    for (int i = 0; i < bench->count; i++) {
        struct candidate *c = &bench->list[i];
        printf("%s.GBps%s%s %.2f GB/s\n", c->name, where, c->suffix,
            bytes / median(c->seconds, bench->rounds) / 1e9);
        if (i > 0 && i < rates_only_after)
            printf(
                "%s.ratio_serial%s%s %.2f x\n", c->name, where, c->suffix, median(c->ratio, bench->rounds));
    }
}

static void add_kernels(struct bench *bench) {
    add(bench, "fnv1a", ".serial", serial);
    add(bench, "fnv1a", "", fnv1a64);
    add(bench, "fnv1a", ".portable", fnv1a_portable.run);
#ifdef HAVE_X86_KERNELS
    if (cpu_present() & CPU_AVX2)
        add(bench, "fnv1a", ".avx2", fnv1a_avx2.run);
    if (cpu_present() & CPU_AVX512)
        add(bench, "fnv1a", ".avx512", fnv1a_avx512.run);
#endif
}

/* Bytes without a pattern, from a small generator (Knuth's MMIX constants). */
static void fill(uint8_t *bytes, size_t len) {
    uint64_t x = 1;
    for (size_t i = 0; i < len; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (uint8_t)(x >> 56);
    }
}

int main(int argc, char **argv) {
    size_t len = (argc > 1 ? strtoul(argv[1], NULL, 10) : 256) << 20;
    int rounds = argc > 2 ? atoi(argv[2]) : 9;
    uint8_t *bytes = aligned_alloc(4096, len);
    if (!bytes || len < IN_CACHE || rounds < 1 || rounds > ROUNDS_MAX || block_key_new(&key, NULL)) {
        fprintf(stderr, "usage: bench_hash [MIB [ROUNDS]], with 1 to %d rounds\n", ROUNDS_MAX);
        return EXIT_FAILURE;
    }
    fill(bytes, len);
    static struct bench memory, cache;
    memory = (struct bench){.bytes = bytes, .len = len, .times = 1, .rounds = rounds};
    cache =
        (struct bench){.bytes = bytes, .len = IN_CACHE, .times = IN_CACHE_WORK / IN_CACHE, .rounds = rounds};
    add_kernels(&memory);
    int kernels = memory.count;
    add(&memory, "sha256", "", sha256);
    add(&memory, "block", "", block);
    add_kernels(&cache);
    go(&cache);
    report(&cache, ".incache", kernels);
    go(&memory);
    report(&memory, "", kernels);
    free(bytes);
    return EXIT_SUCCESS;
}
