/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"
#include "pack/folder.h"
#include "pack/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/file.h>

static struct ckpt_err err;

static void setup(void) {
    folder_make();
    err = (struct ckpt_err){0};
}

static void store(const char *name, const char *text) {
    file_store(folder_file(name), text, strlen(text));
}

static void assert_holds(const char *name, const char *text) {
    struct buf bytes = file_load(folder_file(name));
    ck_assert_str_eq(buf_cstr(&bytes), text);
    buf_free(&bytes);
}

static struct replace *begin(const char *name) {
    struct replace *replace = NULL;
    ck_assert_msg(replace_begin(folder_file(name), &replace, &err) == 0, "%s", err.msg);
    return replace;
}

static void put(struct replace *replace, const char *text) {
    ck_assert_int_eq(pwrite(replace_fd(replace), text, strlen(text), 0), (ssize_t)strlen(text));
}

static void assert_refused(const char *path, int code, int os_errno, const char *words) {
    struct replace *replace = (struct replace *)&err;
    ck_assert_int_eq(replace_begin(path, &replace, &err), code);
    ck_assert_msg(err.os_errno == os_errno, "%s: errno %d: %s", path, err.os_errno, err.msg);
    ck_assert_msg(strstr(err.msg, words) != NULL, "'%s' lacks '%s'", err.msg, words);
    ck_assert_ptr_eq(replace, &err); /* untouched */
    ck_assert_int_eq(replace_begin(path, &replace, NULL), code);
}

/* ---- whole or not at all ------------------------------------------------------------------------------- */

START_TEST(a_new_file) {
    mode_t before = umask(027);
    struct replace *replace = begin("out");
    umask(before);
    ck_assert_int_eq(lseek(replace_fd(replace), 0, SEEK_CUR), 0);
    ck_assert_int_ne(access(folder_file("out"), F_OK), 0);
    put(replace, "new");
    ck_assert_int_eq(replace_commit(replace, &err), 0);
    assert_holds("out", "new");
    struct stat st;
    ck_assert_int_eq(stat(folder_file("out"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
    ck_assert_uint_eq(folder_entries(), 1);
}
END_TEST

START_TEST(the_old_one_stays_until_the_end) {
    store("out", "old");
    ck_assert_int_eq(chmod(folder_file("out"), 0604), 0);
    int old = open(folder_file("out"), O_RDONLY);
    struct replace *replace = begin("out");
    put(replace, "newer");
    assert_holds("out", "old");
    ck_assert_uint_eq(folder_entries(), 2);
    ck_assert_int_eq(replace_commit(replace, &err), 0);
    assert_holds("out", "newer");
    struct stat st;
    ck_assert_int_eq(stat(folder_file("out"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0604);
    char text[8] = "";
    ck_assert_int_eq(read(old, text, sizeof text), 3); /* who has it open keeps it */
    ck_assert_str_eq(text, "old");
    close(old);
    ck_assert_uint_eq(folder_entries(), 1);
}
END_TEST

START_TEST(abandoned) {
    store("out", "old");
    struct replace *replace = begin("out");
    put(replace, "new");
    replace_abandon(replace);
    assert_holds("out", "old");
    ck_assert_uint_eq(folder_entries(), 1);
    replace_abandon(begin("none"));
    ck_assert_uint_eq(folder_entries(), 1);
    replace_abandon(NULL);
}
END_TEST

START_TEST(the_folder_goes_meanwhile) {
    ck_assert_int_eq(mkdir(folder_file("below"), 0700), 0);
    struct replace *replace = begin("below/out");
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s/below'", folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(replace_commit(replace, &err), CKPT_E_IO);
    ck_assert_int_eq(err.os_errno, ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "below/out"));
}
END_TEST

/* ---- where it stands ----------------------------------------------------------------------------------- */

START_TEST(missing_directories_are_made) {
    struct replace *replace = begin("a/b//c/out");
    put(replace, "new");
    ck_assert_int_eq(replace_commit(replace, &err), 0);
    assert_holds("a/b/c/out", "new");
}
END_TEST

START_TEST(made_directories_go_again) {
    ck_assert_int_eq(mkdir(folder_file("mine"), 0700), 0);
    replace_abandon(begin("mine/a//b/out"));
    ck_assert_uint_eq(folder_entries(), 1);
    ck_assert_int_eq(access(folder_file("mine/a"), F_OK), -1);
    struct replace *replace = begin("mine/a/b/out");
    store("mine/a/others", "");
    replace_abandon(replace);
    ck_assert_int_eq(access(folder_file("mine/a/b"), F_OK), -1);
    assert_holds("mine/a/others", "");
    store("mine/a/file", "");
    assert_refused(folder_file("mine/a/file/no/out"), CKPT_E_IO, ENOTDIR, "file/no");
    ck_assert_int_eq(access(folder_file("mine/a/b"), F_OK), -1);
}
END_TEST

/* Not even for a moment more people may read it than the one that it replaces, and its writer always may. */
START_TEST(nobody_else_sees_it_half_done) {
    struct stat st;
    store("out", "old");
    ck_assert_int_eq(chmod(folder_file("out"), 0244), 0);
    struct replace *replace = begin("out");
    ck_assert_int_eq(fstat(replace_fd(replace), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_int_eq(replace_commit(replace, &err), 0);
    ck_assert_int_eq(stat(folder_file("out"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0244);
}
END_TEST

START_TEST(a_relative_path) {
    char before[PATH_MAX];
    struct replace *replace = NULL;
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(replace_begin("out", &replace, &err), 0);
    ck_assert_int_eq(chdir("/"), 0); /* it is known where it stands */
    put(replace, "new");
    ck_assert_int_eq(replace_commit(replace, &err), 0);
    ck_assert_int_eq(chdir(before), 0);
    assert_holds("out", "new");
}
END_TEST

START_TEST(links_are_followed) {
    store("real", "old");
    ck_assert_int_eq(mkdir(folder_file("dir"), 0700), 0);
    ck_assert_int_eq(symlink("dir/second", folder_file("first")), 0);
    ck_assert_int_eq(symlink(folder_file("real"), folder_file("dir/second")), 0);
    struct replace *replace = begin("first");
    put(replace, "new");
    ck_assert_int_eq(replace_commit(replace, &err), 0);
    assert_holds("real", "new");
    struct stat st;
    ck_assert_int_eq(lstat(folder_file("first"), &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_int_eq(symlink("not/there", folder_file("dangling")), 0);
    replace = begin("dangling");
    ck_assert_int_eq(replace_commit(replace, &err), 0);
    assert_holds("not/there", "");
}
END_TEST

START_TEST(no_place_for_a_file) {
    ck_assert_int_eq(symlink("loop", folder_file("loop")), 0);
    ck_assert_int_eq(mkfifo(folder_file("fifo"), 0600), 0);
    store("file", "");
    assert_refused(folder_file("loop"), CKPT_E_IO, ELOOP, "loop");
    assert_refused(folder_file("fifo"), CKPT_E_IO, EINVAL, "no regular file");
    assert_refused(folder_file("file/out"), CKPT_E_IO, ENOTDIR, "file/out");
    assert_refused(folder, CKPT_E_IO, EISDIR, folder);
    assert_refused("/dev/full", CKPT_E_IO, EINVAL, "no regular file");
    static const char *const nameless[] = {"", "/", "//", ".", "..", "a/.", "/tmp/"};
    for (size_t i = 0; i < sizeof nameless / sizeof *nameless; i++)
        assert_refused(nameless[i], CKPT_E_INVAL, 0, "names no file");
    assert_refused("-", CKPT_E_INVAL, 0, "standard output");
    ck_assert_uint_eq(folder_entries(), 3);
}
END_TEST

START_TEST(the_longest_name) {
    char name[NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    name[NAME_MAX] = '\0';
    replace_abandon(begin(name));
    ck_assert_uint_eq(folder_entries(), 0);
    struct replace *replace = begin(name);
    ck_assert_int_eq(replace_commit(replace, &err), 0);
    ck_assert_uint_eq(folder_entries(), 1);
    name[NAME_MAX] = 'n';
    name[NAME_MAX + 1] = '\0';
    assert_refused(folder_file(name), CKPT_E_IO, ENAMETOOLONG, "nnn");
    ck_assert_uint_eq(folder_entries(), 1);
}
END_TEST

/* ---- what others left, and others at work -------------------------------------------------------------- */

START_TEST(dead_temporaries_go) {
    static const char *const others[] = {".other.ckpt-tmp-0123456789abcdef", ".out.ckpt-tmp-0123456789abcde",
        ".out.ckpt-tmp-0123456789abcdefg", "out.ckpt-tmp-0123456789abcdef", ".out.ckpt-0123456789abcdef",
        ".out", ".out.ckpt-backup", ".out.ckpt-tmp-my-own-old-file-", ".out.ckpt-tmp-0123456789abcdez"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        store(others[i], "");
    const unsigned kept = sizeof others / sizeof *others + 1;
    store(".out.ckpt-tmp-abcdefghijklmnop", "half of it");
    store(".out.ckpt-tmp-0123456789abcdef", "");
    ck_assert_int_eq(mkdir(folder_file(".out.ckpt-tmp-fedcba9876543210"), 0700), 0);
    store(".out.ckpt-tmp-fedcba9876543210/inside", ""); /* no file: not a writer of files left it */
    ck_assert_uint_eq(folder_entries(), kept + 2);
    replace_abandon(begin("out"));
    ck_assert_uint_eq(folder_entries(), kept);
    assert_holds(".out.ckpt-tmp-fedcba9876543210/inside", "");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_int_eq(access(folder_file(others[i]), F_OK), 0);
}
END_TEST

START_TEST(living_ones_stay) {
    store(".out.ckpt-tmp-abcdefghijklmnop", "another's");
    int theirs = open(folder_file(".out.ckpt-tmp-abcdefghijklmnop"), O_RDWR);
    ck_assert_int_eq(flock(theirs, LOCK_EX), 0);
    struct replace *first = begin("out"), *second = begin("out");
    put(first, "first");
    put(second, "second");
    ck_assert_uint_eq(folder_entries(), 3);
    ck_assert_int_eq(replace_commit(second, &err), 0);
    assert_holds("out", "second");
    ck_assert_int_eq(replace_commit(first, &err), 0);
    assert_holds("out", "first");
    assert_holds(".out.ckpt-tmp-abcdefghijklmnop", "another's");
    close(theirs);
    replace_abandon(begin("out"));
    ck_assert_uint_eq(folder_entries(), 1);
}
END_TEST

/* A dead temporary's lock is kept until it is gone, so that nobody takes a living one for it. */
#define WRITERS 8

struct writer {
    pthread_t thread;
    char path[PATH_MAX];
    unsigned faults, taken;
    struct ckpt_err fault;
};

static void *write_files(void *arg) {
    struct writer *writer = arg;
    for (int i = 0; i < 150; i++) {
        struct replace *replace;
        int rc = replace_begin(writer->path, &replace, &writer->fault);
        writer->faults += rc || replace_commit(replace, &writer->fault);
    }
    return NULL;
}

static void *write_folder(void *arg) {
    struct writer *writer = arg;
    struct folder *made;
    int fd, rc = folder_begin(writer->path, &made, &writer->fault);
    if (!rc && folder_create(made, "inside", &fd, &writer->fault) != 0)
        writer->faults++;
    else if (!rc && close(fd) == 0)
        rc = folder_commit(made, &writer->fault);
    writer->taken = rc == 0;
    writer->faults += rc && writer->fault.os_errno != ENOTEMPTY;
    return NULL;
}

static unsigned side_by_side(void *(*work)(void *arg)) {
    static struct writer writers[WRITERS];
    unsigned taken = 0;
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.faults = 0};
        snprintf(writers[i].path, sizeof writers[i].path, "%s", folder_file("out"));
        ck_assert_int_eq(pthread_create(&writers[i].thread, NULL, work, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_join(writers[i].thread, NULL), 0);
    for (int i = 0; i < WRITERS; i++) {
        ck_assert_msg(writers[i].faults == 0, "%s", writers[i].fault.msg);
        taken += writers[i].taken;
    }
    return taken;
}

START_TEST(files_side_by_side) {
    side_by_side(write_files);
    ck_assert_uint_eq(folder_entries(), 1);
}
END_TEST

START_TEST(folders_side_by_side) {
    for (int i = 0; i < 40; i++) {
        ck_assert_uint_eq(side_by_side(write_folder), 1);
        ck_assert_uint_eq(folder_entries(), 1);
        assert_holds("out/inside", "");
        ck_assert_int_eq(unlink(folder_file("out/inside")), 0);
        ck_assert_int_eq(rmdir(folder_file("out")), 0);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("replace");
    TCase *tcase = tcase_create("files");
    tcase_add_checked_fixture(tcase, setup, folder_clear);
    tcase_add_test(tcase, a_new_file);
    tcase_add_test(tcase, the_old_one_stays_until_the_end);
    tcase_add_test(tcase, abandoned);
    tcase_add_test(tcase, the_folder_goes_meanwhile);
    tcase_add_test(tcase, missing_directories_are_made);
    tcase_add_test(tcase, made_directories_go_again);
    tcase_add_test(tcase, nobody_else_sees_it_half_done);
    tcase_add_test(tcase, a_relative_path);
    tcase_add_test(tcase, links_are_followed);
    tcase_add_test(tcase, no_place_for_a_file);
    tcase_add_test(tcase, the_longest_name);
    tcase_add_test(tcase, dead_temporaries_go);
    tcase_add_test(tcase, living_ones_stay);
    tcase_add_test(tcase, files_side_by_side);
    tcase_add_test(tcase, folders_side_by_side);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
