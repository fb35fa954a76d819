/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds every file of the given files and folders to a fuzz target, without a fuzzer. The inputs are copied
 * to memory of exactly their size, so that a sanitizer sees any read past them. Fails when there was no
 * input.
 */
#include "fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_BYTES_MAX (4 << 20) /* larger ones are passed over */
#define OPEN_FOLDERS_MAX 16

static unsigned inputs, faults; /* nftw has no argument for its callback */

static void feed(FILE *file, size_t len) {
    uint8_t *bytes = malloc(len);
    if ((!bytes && len) || fread(bytes, 1, len, file) != len) {
        faults++;
    } else {
        LLVMFuzzerTestOneInput(bytes, len);
        inputs++;
    }
    free(bytes);
}

static int visit(const char *path, const struct stat *stat, int kind, struct FTW *where) {
    (void)where;
    if (kind != FTW_F || stat->st_size > INPUT_BYTES_MAX)
        return 0;
    if (getenv("FUZZ_VERBOSE"))
        fprintf(stderr, "%s\n", path); /* to see which one ends the process */
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        faults++;
        return 0;
    }
    feed(file, (size_t)stat->st_size);
    fclose(file);
    return 0;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (nftw(argv[i], visit, OPEN_FOLDERS_MAX, 0)) {
            perror(argv[i]);
            faults++;
        }
    printf("%s: %u inputs, %u unreadable\n", argv[0], inputs, faults);
    return inputs && !faults ? EXIT_SUCCESS : EXIT_FAILURE;
}
