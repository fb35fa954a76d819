/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every test works in a directory of its own; file("a") is a path in it. */
static char folder[64];
static struct ckpt_err err;

static const char *file(const char *name) {
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void setup(void) {
    strcpy(folder, "/tmp/t_source.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    err = (struct ckpt_err){0};
}

static void teardown(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static void write_file(const char *name, const char *text) {
    FILE *out = fopen(file(name), "w");
    ck_assert_ptr_nonnull(out);
    ck_assert(fputs(text, out) >= 0);
    ck_assert_int_eq(fclose(out), 0);
}

static void set_mtime(const char *name, time_t sec, long nsec) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = sec, .tv_nsec = nsec}};
    ck_assert_int_eq(utimensat(AT_FDCWD, file(name), times, 0), 0);
}

static struct source *open_file(const char *name) {
    struct source *source = NULL;
    ck_assert_msg(source_open_file(file(name), &source, &err) == 0, "%s", err.msg);
    return source;
}

static struct source *from_text(const char *text) {
    struct source *source = NULL;
    ck_assert_int_eq(source_from_mem("mem", text, strlen(text), &source, &err), 0);
    return source;
}

static void assert_reads(struct source *source, uint64_t off, const char *wanted) {
    char got[64] = {0};
    ck_assert_msg(source_read(source, off, got, strlen(wanted), &err) == 0, "%s", err.msg);
    ck_assert_str_eq(got, wanted);
}

static int read_some(struct source *source, uint64_t off, size_t len) {
    char got[64];
    ck_assert(len <= sizeof got);
    return source_read(source, off, got, len, &err);
}

START_TEST(a_file_is_read_and_described) {
    write_file("a", "0123456789");
    set_mtime("a", 1234, 567);
    struct source *source = open_file("a");
    ck_assert_uint_eq(source->size, 10);
    ck_assert_uint_eq(source->opened.size, 10);
    ck_assert_int_eq(source->opened.mtime_sec, 1234);
    ck_assert_uint_eq(source->opened.mtime_nsec, 567);
    ck_assert_str_eq(source->name, file("a"));
    assert_reads(source, 0, "0123456789");
    assert_reads(source, 7, "789");
    ck_assert_int_eq(source_read(source, UINT64_MAX, NULL, 0, &err), 0);
    source_advise(source, 0, 10, true);
    source_advise(source, 5, UINT64_MAX, false);
    source_advise(source, UINT64_MAX, 1, true);
    source_advise(source, 0, 0, true);
    ck_assert_int_eq(source_unchanged(source, &err), 0);
    source_close(source);
    source_close(NULL);
}
END_TEST

START_TEST(a_read_past_the_end_says_where_it_ended) {
    write_file("a", "0123456789");
    struct source *source = open_file("a");
    ck_assert_int_eq(read_some(source, 7, 20), CKPT_E_CHANGED);
    char wanted[600];
    snprintf(wanted, sizeof wanted, "%s: ended at byte 10, 20 bytes at offset 7 wanted", file("a"));
    ck_assert_str_eq(err.msg, wanted);
    ck_assert_int_eq(read_some(source, 10, 1), CKPT_E_CHANGED);
    ck_assert_int_eq(read_some(source, 50, 1), CKPT_E_CHANGED);
    ck_assert_ptr_nonnull(strstr(err.msg, "ended at byte 10, 1 bytes at offset 50 wanted"));
    ck_assert_int_eq(read_some(source, INT64_MAX, 1), CKPT_E_CHANGED);
    ck_assert_int_eq(read_some(source, (uint64_t)INT64_MAX - 1, 64), CKPT_E_CHANGED);
    ck_assert_int_eq(read_some(source, UINT64_MAX, 1), CKPT_E_CHANGED);
    source_close(source);
}
END_TEST

START_TEST(truncation_is_noticed) {
    write_file("a", "0123456789");
    set_mtime("a", 1000, 0);
    struct source *source = open_file("a");
    ck_assert_int_eq(truncate(file("a"), 4), 0);
    set_mtime("a", 1000, 0); /* the size alone must do */
    ck_assert_int_eq(source_unchanged(source, &err), CKPT_E_CHANGED);
    ck_assert_ptr_nonnull(strstr(err.msg, "4 bytes, were 10"));
    ck_assert_int_eq(read_some(source, 2, 8), CKPT_E_CHANGED);
    ck_assert_ptr_nonnull(strstr(err.msg, "ended at byte 4, 8 bytes at offset 2 wanted"));
    assert_reads(source, 0, "0123");
    source_close(source);
}
END_TEST

START_TEST(rewriting_is_noticed_by_time_down_to_nanoseconds) {
    write_file("a", "0123456789");
    set_mtime("a", 1000, 5);
    struct source *source = open_file("a");
    ck_assert_int_eq(source_unchanged(source, &err), 0);
    write_file("a", "abcdefghij");
    set_mtime("a", 1000, 6);
    ck_assert_int_eq(source_unchanged(source, &err), CKPT_E_CHANGED);
    ck_assert_ptr_nonnull(strstr(err.msg, "modified at 1000.000000006, was 1000.000000005"));
    set_mtime("a", 999, 5);
    ck_assert_int_eq(source_unchanged(source, &err), CKPT_E_CHANGED);
    source_close(source);
}
END_TEST

START_TEST(a_replaced_file_stays_readable_and_unchanged) {
    write_file("a", "old");
    struct source *source = open_file("a");
    write_file("b", "new and longer");
    ck_assert_int_eq(rename(file("b"), file("a")), 0);
    assert_reads(source, 0, "old");
    ck_assert_int_eq(source_unchanged(source, &err), 0);
    ck_assert_int_eq(unlink(file("a")), 0);
    ck_assert_int_eq(source_unchanged(source, &err), 0);
    source_close(source);
}
END_TEST

START_TEST(only_regular_files_are_opened) {
    struct source *source = NULL;
    ck_assert_int_eq(source_open_file(file("missing"), &source, &err), CKPT_E_IO);
    ck_assert_int_eq(err.os_errno, ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "missing"));
    ck_assert_int_eq(source_open_file(folder, &source, &err), CKPT_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "is a directory, not a regular file"));
    ck_assert_int_eq(mkfifo(file("fifo"), 0600), 0);
    ck_assert_int_eq(source_open_file(file("fifo"), &source, &err), CKPT_E_FORMAT); /* and does not block */
    ck_assert_ptr_nonnull(strstr(err.msg, "is a FIFO, not a regular file"));
    ck_assert_int_eq(source_open_file("/dev/null", &source, &err), CKPT_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "is a device"));
    ck_assert_int_eq(source_open_file("", &source, &err), CKPT_E_IO);
    ck_assert_ptr_null(source);
}
END_TEST

START_TEST(siblings_stand_in_the_directory_that_the_path_names) {
    /* as in a download cache: the names are links into a store elsewhere */
    ck_assert_int_eq(mkdir(file("store"), 0700), 0);
    ck_assert_int_eq(mkdir(file("model"), 0700), 0);
    write_file("store/1", "index");
    write_file("store/2", "shard");
    ck_assert_int_eq(symlink("../store/1", file("model/index")), 0);
    ck_assert_int_eq(symlink("../store/2", file("model/shard")), 0);
    struct source *index = open_file("model/index"), *shard = NULL;
    assert_reads(index, 0, "index");
    ck_assert_int_eq(source_sibling(index, "shard", &shard, &err), 0);
    ck_assert_str_eq(shard->name, file("model/shard"));
    assert_reads(shard, 0, "shard");
    struct source *other = NULL;
    ck_assert_int_eq(source_sibling(shard, "index", &other, &err), CKPT_E_NOENT);
    ck_assert_int_eq(source_sibling(index, "2", &other, &err), CKPT_E_IO);
    ck_assert_int_eq(err.os_errno, ENOENT);
    ck_assert_ptr_null(other);
    source_close(index);
    assert_reads(shard, 0, "shard"); /* stands on its own */
    source_close(shard);
}
END_TEST

START_TEST(siblings_are_found_after_the_directory_moved_or_was_left) {
    int here = open(".", O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(mkdir(file("d"), 0700), 0);
    write_file("d/a", "a");
    write_file("d/b", "b");
    ck_assert_int_eq(chdir(file("d")), 0);
    struct source *a = NULL, *b = NULL;
    ck_assert_int_eq(source_open_file("a", &a, &err), 0);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rename(file("d"), file("e")), 0);
    ck_assert_int_eq(source_sibling(a, "b", &b, &err), 0);
    ck_assert_str_eq(b->name, "b");
    assert_reads(b, 0, "b");
    source_close(b);
    source_close(a);
    ck_assert_int_eq(fchdir(here), 0);
    close(here);
}
END_TEST

START_TEST(names_that_leave_the_directory_are_refused) {
    static const char *const names[] = {"", ".", "..", "../a", "d/a", "/etc/passwd", "a/", "./a"};
    ck_assert_int_eq(mkdir(file("d"), 0700), 0);
    write_file("a", "a");
    write_file("d/a", "a");
    struct source *source = open_file("d/a"), *other = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_msg(source_sibling(source, names[i], &other, &err) == CKPT_E_CORRUPT, "%s", names[i]);
        ck_assert_ptr_nonnull(strstr(err.msg, "is no name of a file beside it"));
    }
    ck_assert_int_eq(mkdir(file("d/sub"), 0700), 0);
    ck_assert_int_eq(source_sibling(source, "sub", &other, &err), CKPT_E_FORMAT);
    ck_assert_ptr_null(other);
    write_file("d/..a", "dots in a name are fine");
    ck_assert_int_eq(source_sibling(source, "..a", &other, &err), 0);
    source_close(other);
    source_close(source);
}
END_TEST

START_TEST(memory_is_a_source) {
    struct source *source = from_text("abcdef"), *other = NULL;
    ck_assert_uint_eq(source->size, 6);
    assert_reads(source, 2, "cdef");
    ck_assert_int_eq(read_some(source, 5, 2), CKPT_E_CHANGED);
    ck_assert_str_eq(err.msg, "mem: ended at byte 6, 2 bytes at offset 5 wanted");
    ck_assert_int_eq(read_some(source, UINT64_MAX, 1), CKPT_E_CHANGED);
    ck_assert_int_eq(source_unchanged(source, &err), 0);
    ck_assert_int_eq(source_sibling(source, "x", &other, &err), CKPT_E_NOENT);
    source_close(source);
    ck_assert_int_eq(source_from_mem("empty", NULL, 0, &source, &err), 0);
    ck_assert_int_eq(source_read(source, 0, NULL, 0, &err), 0);
    source_close(source);
}
END_TEST

START_TEST(slices_stay_inside_their_bounds) {
    struct source *under = from_text("0123456789"), *slice = NULL, *inner = NULL;
    ck_assert_int_eq(source_slice(under, 2, 5, &slice, &err), 0);
    ck_assert_uint_eq(slice->size, 5);
    assert_reads(slice, 0, "23456");
    assert_reads(slice, 4, "6");
    ck_assert_int_eq(read_some(slice, 4, 2), CKPT_E_CHANGED);
    ck_assert_str_eq(err.msg, "mem, from byte 2: ended at byte 5, 2 bytes at offset 4 wanted");
    ck_assert_int_eq(read_some(slice, 5, 1), CKPT_E_CHANGED);
    ck_assert_int_eq(read_some(slice, UINT64_MAX, 1), CKPT_E_CHANGED);
    ck_assert_int_eq(source_slice(slice, 1, 3, &inner, &err), 0);
    assert_reads(inner, 0, "345");
    source_advise(inner, 0, UINT64_MAX, true);
    source_close(inner);
    source_close(slice);
    inner = slice = NULL;
    ck_assert_int_eq(source_slice(under, 10, 0, &slice, &err), 0);
    source_close(slice);
    slice = NULL;
    ck_assert_int_eq(source_slice(under, 10, 1, &slice, &err), CKPT_E_INVAL);
    ck_assert_str_eq(err.msg, "mem: offset 10 + size 1 past end 10");
    ck_assert_int_eq(source_slice(under, 11, 0, &slice, &err), CKPT_E_INVAL);
    ck_assert_int_eq(source_slice(under, 1, UINT64_MAX, &slice, &err), CKPT_E_INVAL);
    ck_assert_ptr_null(slice);
    source_close(under);
}
END_TEST

START_TEST(a_slice_changes_with_what_it_lies_on) {
    write_file("a", "0123456789");
    set_mtime("a", 1000, 0);
    struct source *under = open_file("a"), *slice = NULL;
    ck_assert_int_eq(source_slice(under, 2, 3, &slice, &err), 0);
    ck_assert_int_eq(source_unchanged(slice, &err), 0);
    ck_assert_int_eq(truncate(file("a"), 9), 0); /* behind the slice, but the file is another one now */
    set_mtime("a", 1000, 0);
    ck_assert_int_eq(source_unchanged(slice, &err), CKPT_E_CHANGED);
    ck_assert_int_eq(truncate(file("a"), 1), 0);
    ck_assert_int_eq(read_some(slice, 0, 3), CKPT_E_CHANGED);
    ck_assert_ptr_nonnull(strstr(err.msg, "ended at byte 0, 3 bytes at offset 0 wanted"));
    source_close(slice);
    source_close(under);
}
END_TEST

/* Parts of the given texts, up to a NULL. */
static struct source *concat(const char *const *texts) {
    struct source *parts[16], *source = NULL;
    size_t count = 0;
    for (; texts[count]; count++)
        parts[count] = from_text(texts[count]);
    ck_assert_int_eq(source_concat("all", parts, count, &source, &err), 0);
    return source;
}

START_TEST(parts_read_as_one) {
    static const char *const splits[][8] = {{"0123456789", NULL}, {"0", "123", "456789", NULL},
        {"", "01234", "", "", "56789", "", NULL}, {"0", "1", "2", "3", "456", "789", NULL},
        {"", "", "0123456789", NULL}};
    for (size_t s = 0; s < sizeof splits / sizeof *splits; s++) {
        struct source *source = concat(splits[s]);
        ck_assert_uint_eq(source->size, 10);
        for (size_t off = 0; off <= 10; off++)
            for (size_t len = 0; off + len <= 10; len++) {
                char wanted[16];
                snprintf(wanted, sizeof wanted, "%.*s", (int)len, &"0123456789"[off]);
                assert_reads(source, off, wanted);
            }
        ck_assert_int_eq(read_some(source, 8, 3), CKPT_E_CHANGED);
        ck_assert_str_eq(err.msg, "all: ended at byte 10, 3 bytes at offset 8 wanted");
        ck_assert_int_eq(read_some(source, UINT64_MAX, 1), CKPT_E_CHANGED);
        source_advise(source, 0, 10, true);
        source_advise(source, 3, UINT64_MAX, false);
        source_advise(source, 10, 1, false);
        source_close(source);
    }
}
END_TEST

START_TEST(no_parts_are_an_empty_source) {
    static const char *const none[] = {NULL}, *const empty[] = {"", "", NULL};
    struct source *source = concat(none);
    ck_assert_uint_eq(source->size, 0);
    ck_assert_int_eq(read_some(source, 0, 1), CKPT_E_CHANGED);
    ck_assert_int_eq(source_unchanged(source, &err), 0);
    source_close(source);
    source = concat(empty);
    ck_assert_int_eq(read_some(source, 0, 1), CKPT_E_CHANGED);
    source_close(source);
}
END_TEST

START_TEST(a_change_of_any_part_is_noticed_and_named) {
    for (int changed = 0; changed < 3; changed++) {
        static const char *const names[] = {"p0", "p1", "p2"};
        struct source *parts[3], *source = NULL;
        for (int i = 0; i < 3; i++) {
            write_file(names[i], "abcd");
            set_mtime(names[i], 1000 + i, 0);
            parts[i] = open_file(names[i]);
        }
        ck_assert_int_eq(source_concat("all", parts, 3, &source, &err), 0);
        ck_assert_int_eq(source->opened.mtime_sec, 1002);
        ck_assert_uint_eq(source->opened.size, 12);
        ck_assert_int_eq(source_unchanged(source, &err), 0);
        set_mtime(names[changed], 500, 0); /* an older time than the others' must do */
        ck_assert_int_eq(source_unchanged(source, &err), CKPT_E_CHANGED);
        ck_assert_ptr_nonnull(strstr(err.msg, names[changed]));
        ck_assert_int_eq(truncate(file(names[changed]), 1), 0);
        ck_assert_int_eq(read_some(source, 0, 12), CKPT_E_CHANGED);
        ck_assert_ptr_nonnull(strstr(err.msg, names[changed]));
        source_close(source);
    }
}
END_TEST

START_TEST(sizes_that_pass_64_bits_are_refused) {
    struct source *parts[2] = {from_text("a"), from_text("b")}, *source = NULL;
    parts[1]->size = parts[1]->opened.size = UINT64_MAX;
    ck_assert_int_eq(source_concat("all", parts, 2, &source, &err), CKPT_E_LIMIT);
    ck_assert_str_eq(err.msg, "all: the sizes of its 2 parts pass 2^64");
    ck_assert_ptr_null(source); /* and the parts were closed: a leak checker tells */
}
END_TEST

/* A source that hands out at most two bytes at a time. */
static int drip(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *e) {
    (void)source, (void)e;
    *ret_len = len < 2 ? len : 2;
    memcpy(buf, &"0123456789"[off], *ret_len);
    return 0;
}

static int refuse(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *e) {
    return off < 4 ? drip(source, off, buf, len, ret_len, e) : err_os(e, EIO, "read");
}

START_TEST(short_reads_are_continued_and_errors_passed_on) {
    const struct source_ops dripping = {.pread = drip}, refusing = {.pread = refuse};
    struct source *source = NULL;
    ck_assert_int_eq(source_new(sizeof *source, &dripping, "drip", &source, &err), 0);
    assert_reads(source, 1, "12345");
    source_close(source);
    ck_assert_int_eq(source_new(sizeof *source, &refusing, "refuse", &source, &err), 0);
    ck_assert_int_eq(read_some(source, 0, 6), CKPT_E_IO);
    ck_assert_int_eq(err.os_errno, EIO);
    source_close(source);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("source");
    TCase *tcase = tcase_create("source");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_file_is_read_and_described);
    tcase_add_test(tcase, a_read_past_the_end_says_where_it_ended);
    tcase_add_test(tcase, truncation_is_noticed);
    tcase_add_test(tcase, rewriting_is_noticed_by_time_down_to_nanoseconds);
    tcase_add_test(tcase, a_replaced_file_stays_readable_and_unchanged);
    tcase_add_test(tcase, only_regular_files_are_opened);
    tcase_add_test(tcase, siblings_stand_in_the_directory_that_the_path_names);
    tcase_add_test(tcase, siblings_are_found_after_the_directory_moved_or_was_left);
    tcase_add_test(tcase, names_that_leave_the_directory_are_refused);
    tcase_add_test(tcase, memory_is_a_source);
    tcase_add_test(tcase, slices_stay_inside_their_bounds);
    tcase_add_test(tcase, a_slice_changes_with_what_it_lies_on);
    tcase_add_test(tcase, parts_read_as_one);
    tcase_add_test(tcase, no_parts_are_an_empty_source);
    tcase_add_test(tcase, a_change_of_any_part_is_noticed_and_named);
    tcase_add_test(tcase, sizes_that_pass_64_bits_are_refused);
    tcase_add_test(tcase, short_reads_are_continued_and_errors_passed_on);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
