/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What verification is measured against: one thread that reads a file and hashes it, nothing overlapped.
 *
 *   serial fnv1a FILE [OFFSET LENGTH]    the plain loop, a byte at a time
 *   serial sha256 FILE [OFFSET LENGTH]   OpenSSL's EVP
 *
 * Prints "SECONDS HASH_SECONDS DIGEST": wall-clock time of all, CPU time of the hashing alone, and what came
 * out, the FNV-1a as a number in hex.
 */
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIECE ((size_t)256 << 10) /* stays in a core's own cache between reading and hashing */

struct serial {
    EVP_MD_CTX *sha256; /* NULL: FNV-1a */
    uint64_t fnv;
    double hash_seconds;
};

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t fnv1a(uint64_t h, const uint8_t *bytes, size_t len) {
    for (size_t i = 0; i < len; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void update(struct serial *serial, const uint8_t *bytes, size_t len) {
    double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    if (serial->sha256)
        EVP_DigestUpdate(serial->sha256, bytes, len);
    else
        serial->fnv = fnv1a(serial->fnv, bytes, len);
    serial->hash_seconds += seconds_of(CLOCK_THREAD_CPUTIME_ID) - start;
}

/* False: a read failed. */
static bool hash_range(struct serial *serial, int fd, uint64_t off, uint64_t len) {
    static uint8_t buffer[PIECE];
    while (len) {
        ssize_t got = pread(fd, buffer, len < PIECE ? len : PIECE, (off_t)off);
        if (got < 0)
            return false;
        if (got == 0)
            break;
        update(serial, buffer, (size_t)got);
        off += (uint64_t)got;
        len -= (uint64_t)got;
    }
    return true;
}

static void print_digest(struct serial *serial) {
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (!serial->sha256) {
        printf("%016llx\n", (unsigned long long)serial->fnv);
        return;
    }
    EVP_DigestFinal_ex(serial->sha256, digest, &len);
    for (unsigned i = 0; i < len; i++)
        printf("%02x", digest[i]);
    putchar('\n');
}

int main(int argc, char **argv) {
    bool sha256 = argc > 1 && strcmp(argv[1], "sha256") == 0;
    if ((argc != 3 && argc != 5) || (!sha256 && strcmp(argv[1], "fnv1a") != 0)) {
        fprintf(stderr, "usage: %s fnv1a|sha256 FILE [OFFSET LENGTH]\n", argv[0]);
        return EXIT_FAILURE;
    }
    struct serial serial = {.fnv = UINT64_C(0xcbf29ce484222325)};
    int fd = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (sha256)
        serial.sha256 = EVP_MD_CTX_new();
    if (fd < 0 || (sha256 && (!serial.sha256 || !EVP_DigestInit_ex(serial.sha256, EVP_sha256(), NULL)))) {
        perror(argv[2]);
        return EXIT_FAILURE;
    }
    double start = seconds_of(CLOCK_MONOTONIC);
    if (!hash_range(&serial, fd, argc == 5 ? strtoull(argv[3], NULL, 10) : 0,
            argc == 5 ? strtoull(argv[4], NULL, 10) : UINT64_MAX)) {
        perror(argv[2]);
        return EXIT_FAILURE;
    }
    printf("%.9f %.9f ", seconds_of(CLOCK_MONOTONIC) - start, serial.hash_seconds);
    print_digest(&serial);
    EVP_MD_CTX_free(serial.sha256);
    close(fd);
    return EXIT_SUCCESS;
}
