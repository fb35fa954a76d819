/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for the files that a test writes. */
#ifndef TESTS_UNIT_FOLDER_H
#define TESTS_UNIT_FOLDER_H

#include "base/buf.h"
#include "unit.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static inline void folder_make(void) {
    strcpy(folder, "/tmp/ckptfs_unit.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void folder_clear(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/* The path of a file in it; good for four calls. */
static inline const char *folder_file(const char *name) {
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* How many entries it has: a writer that failed leaves none. */
static inline unsigned folder_entries(void) {
    unsigned count = 0;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(dir);
    return count;
}

/* The whole file, in memory of the caller's (buf_free). */
static inline struct buf file_load(const char *path) {
    char piece[65536];
    struct buf bytes = {0};
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;)
        buf_put(&bytes, piece, got);
    fclose(file);
    ck_assert_ptr_nonnull(buf_cstr(&bytes));
    return bytes;
}

static inline void file_store(const char *path, const void *bytes, size_t len) {
    FILE *file = fopen(path, "wb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
