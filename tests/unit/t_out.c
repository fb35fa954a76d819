/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ovf.h"
#include "folder.h"
#include "hash/fnv1a.h"
#include "pack/out.h"

static struct ckpt_err err;
static struct out *out;

static void setup(void) {
    folder_make();
    err = (struct ckpt_err){0};
}

static void begin(uint64_t total, const struct ckpt_write_options *options) {
    ck_assert_msg(out_begin(folder_file("out"), total, options, &out, &err) == 0, "%s", err.msg);
}

static uint8_t byte_at(uint64_t i) {
    return (uint8_t)(i * 7 + i / 251);
}

static uint8_t *pattern(uint64_t from, size_t len) {
    uint8_t *bytes = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        bytes[i] = byte_at(from + i);
    return bytes;
}

static void put(size_t len) {
    uint8_t *bytes = pattern(out_at(out), len);
    ck_assert_int_eq(out_put(out, bytes, len, &err), 0);
    free(bytes);
}

static void assert_pattern(const struct buf *bytes, size_t from, size_t len) {
    uint8_t *wanted = pattern(from, len);
    ck_assert_int_eq(memcmp(bytes->bytes + from, wanted, len), 0);
    free(wanted);
}

START_TEST(pieces_of_all_sizes) {
    static const size_t sizes[] = {
        1, 0, 4095, OUT_ROOM_MAX - 1, OUT_ROOM_MAX, OUT_ROOM_MAX + 1, 3, 2 * OUT_ROOM_MAX};
    uint64_t total = 0;
    begin(0, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        put(sizes[i]);
        total += sizes[i];
        ck_assert_uint_eq(out_at(out), total);
    }
    ck_assert_int_eq(out_commit(out, &err), 0);
    struct buf bytes = file_load(folder_file("out"));
    ck_assert_uint_eq(bytes.len, total);
    assert_pattern(&bytes, 0, bytes.len);
    buf_free(&bytes);
}
END_TEST

START_TEST(zeros_copies_and_room) {
    size_t len = OUT_ROOM_MAX + 77;
    uint8_t *from = pattern(5, len), *room;
    struct source *source;
    ck_assert_int_eq(source_from_mem("memory", from, len, &source, &err), 0);
    begin(5 + len + 3 + OUT_ROOM_MAX + 9, NULL);
    put(5);
    ck_assert_int_eq(out_copy(out, source, 0, len, &err), 0);
    ck_assert_int_eq(out_room(out, OUT_ROOM_MAX, &room, &err), 0);
    memset(room, 'r', 3);
    ck_assert_int_eq(out_put_room(out, 3, &err), 0);
    ck_assert_int_eq(out_zeros(out, OUT_ROOM_MAX + 9, &err), 0);
    ck_assert_int_eq(out_commit(out, &err), 0);
    struct buf bytes = file_load(folder_file("out"));
    ck_assert_uint_eq(bytes.len, 5 + len + 3 + OUT_ROOM_MAX + 9);
    assert_pattern(&bytes, 0, 5 + len);
    ck_assert_int_eq(memcmp(bytes.bytes + 5 + len, "rrr", 3), 0);
    size_t zeros = 0;
    while (zeros < OUT_ROOM_MAX + 9 && !bytes.bytes[5 + len + 3 + zeros])
        zeros++;
    ck_assert_uint_eq(zeros, OUT_ROOM_MAX + 9);
    buf_free(&bytes);
    source_close(source);
    free(from);
}
END_TEST

START_TEST(a_copy_past_the_end) {
    struct source *source;
    ck_assert_int_eq(source_from_mem("memory", "abc", 3, &source, &err), 0);
    begin(0, NULL);
    ck_assert_int_ne(out_copy(out, source, 1, 3, &err), 0);
    out_abandon(out);
    ck_assert_uint_eq(folder_entries(), 0);
    source_close(source);
}
END_TEST

/* From the first patch on, and over the buffer's edge. */
START_TEST(patches) {
    begin(0, NULL);
    put(OUT_ROOM_MAX + 10);
    ck_assert_int_eq(out_patch(out, OUT_ROOM_MAX - 1, "xyz", 3, &err), 0);
    ck_assert_int_eq(out_patch(out, 0, "a", 1, &err), 0);
    ck_assert_uint_eq(out_at(out), OUT_ROOM_MAX + 10);
    ck_assert_int_eq(out_patch(out, OUT_ROOM_MAX + 9, "xy", 2, &err), CKPT_E_INVAL);
    ck_assert_int_eq(out_patch(out, UINT64_MAX, "xy", 2, &err), CKPT_E_INVAL);
    put(10);
    ck_assert_int_eq(out_commit(out, &err), 0);
    struct buf bytes = file_load(folder_file("out"));
    ck_assert_uint_eq(bytes.len, OUT_ROOM_MAX + 20);
    ck_assert_int_eq(bytes.bytes[0], 'a');
    assert_pattern(&bytes, 1, OUT_ROOM_MAX - 2);
    ck_assert_int_eq(memcmp(bytes.bytes + OUT_ROOM_MAX - 1, "xyz", 3), 0);
    assert_pattern(&bytes, OUT_ROOM_MAX + 2, 18);
    buf_free(&bytes);
}
END_TEST

START_TEST(digests_of_stretches) {
    static const size_t sizes[] = {0, 1, 5000, OUT_ROOM_MAX, 2 * OUT_ROOM_MAX + 1};
    uint64_t digest = 0;
    begin(0, NULL);
    ck_assert_int_eq(out_digest_end(out, &digest, &err), CKPT_E_INVAL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        put(123);
        uint64_t from = out_at(out);
        ck_assert_int_eq(out_digest_begin(out, &err), 0);
        ck_assert_int_eq(out_digest_begin(out, &err), CKPT_E_INVAL);
        put(sizes[i]);
        ck_assert_int_eq(out_patch(out, 0, "patch", 5, &err), 0); /* no part of it */
        ck_assert_int_eq(out_digest_end(out, &digest, &err), 0);
        uint8_t *bytes = pattern(from, sizes[i]);
        ck_assert_uint_eq(digest, fnv1a64(FNV1A64_START, bytes, sizes[i]));
        free(bytes);
    }
    out_abandon(out);
    ck_assert_uint_eq(folder_entries(), 0);
}
END_TEST

START_TEST(less_or_more_than_promised) {
    for (size_t len = 9; len <= 11; len += 2) {
        begin(10, NULL);
        put(len);
        ck_assert_int_eq(out_commit(out, &err), CKPT_E_INVAL);
        ck_assert_ptr_nonnull(strstr(err.msg, "10 promised"));
        ck_assert_uint_eq(folder_entries(), 0);
    }
}
END_TEST

/* ---- the caller ---------------------------------------------------------------------------------------- */

struct caller {
    uint64_t told, total;
    unsigned calls;
    bool stop;
};

static bool asked(void *arg) {
    return ((struct caller *)arg)->stop;
}

static void tell(void *arg, uint64_t done, uint64_t total) {
    struct caller *caller = arg;
    ck_assert_uint_ge(done, caller->told);
    caller->told = done;
    caller->total = total;
    caller->calls++;
}

START_TEST(told_and_stopped) {
    struct caller caller = {0};
    const struct ckpt_cancel cancel = {asked, &caller};
    const struct ckpt_progress progress = {tell, &caller};
    const struct ckpt_write_options options = {&cancel, &progress};
    uint64_t total = 3 * OUT_ROOM_MAX + 5;
    begin(total, &options);
    put((size_t)total);
    ck_assert_int_eq(out_commit(out, &err), 0);
    ck_assert_uint_eq(caller.told, total);
    ck_assert_uint_eq(caller.total, total);
    ck_assert_uint_ge(caller.calls, 3);

    file_store(folder_file("out"), "old", 3);
    caller = (struct caller){.stop = true};
    begin(0, &options);
    put(10);
    ck_assert_int_eq(out_commit(out, &err), CKPT_E_INTR);
    struct buf bytes = file_load(folder_file("out"));
    ck_assert_uint_eq(bytes.len, 3);
    buf_free(&bytes);
    ck_assert_uint_eq(folder_entries(), 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("out");
    TCase *tcase = tcase_create("writing");
    tcase_add_checked_fixture(tcase, setup, folder_clear);
    tcase_add_test(tcase, pieces_of_all_sizes);
    tcase_add_test(tcase, zeros_copies_and_room);
    tcase_add_test(tcase, a_copy_past_the_end);
    tcase_add_test(tcase, patches);
    tcase_add_test(tcase, digests_of_stretches);
    tcase_add_test(tcase, less_or_more_than_promised);
    tcase_add_test(tcase, told_and_stopped);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
