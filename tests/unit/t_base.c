/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/ovf.h"
#include "base/rd.h"
#include "base/text.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

START_TEST(errors_carry_verdict_and_context) {
    struct ckpt_err err;
    ck_assert_int_eq(err_verdict(&err, CKPT_E_CORRUPT, "invalid magic", "0x%x", 7), CKPT_E_CORRUPT);
    ck_assert_int_eq(err_wrap(&err, CKPT_E_IO, "open %s", "a.oam"), CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "invalid magic");
    ck_assert_str_eq(err.msg, "open a.oam: invalid magic: 0x7");
    ck_assert_int_eq(ckpt_errno(&err), EIO);
    ck_assert_int_eq(err_os(&err, ENOSPC, "write"), CKPT_E_IO);
    ck_assert_int_eq(ckpt_errno(&err), ENOSPC);
    ck_assert_int_eq(err_set(NULL, CKPT_E_LIMIT, "x"), CKPT_E_LIMIT);
}
END_TEST

START_TEST(long_messages_are_cut_not_overrun) {
    struct ckpt_err err;
    char long_[3000];
    memset(long_, 'x', sizeof long_ - 1);
    long_[sizeof long_ - 1] = '\0';
    err_set(&err, CKPT_E_INVAL, "%s", long_);
    err_wrap(&err, CKPT_E_INVAL, "%s", long_);
    err_verdict(&err, CKPT_E_CORRUPT, long_, "%s", long_);
    err_os(&err, EIO, "%s", long_);
    ck_assert_uint_eq(strlen(err.msg), sizeof err.msg - 1);
}
END_TEST

START_TEST(checked_arithmetic) {
    uint64_t r = 7;
    ck_assert(!ovf_add(UINT64_MAX, 1, &r) && r == 7);
    ck_assert(!ovf_mul(UINT64_MAX, 2, &r) && r == 7);
    ck_assert(ovf_add(UINT64_MAX - 1, 1, &r) && r == UINT64_MAX);
    ck_assert(ovf_inside(10, 0, 10) && !ovf_inside(11, 0, 10) && !ovf_inside(1, UINT64_MAX, 10));
}
END_TEST

START_TEST(cursor_never_reads_past_the_end) {
    const uint8_t bytes[] = {1, 2, 3, 4, 5};
    struct rd rd = rd_over(bytes, sizeof bytes);
    ck_assert_uint_eq(rd_u32(&rd), 0x04030201u);
    ck_assert(!rd.short_);
    ck_assert_uint_eq(rd_u32(&rd), 0);
    ck_assert(rd.short_);
    ck_assert_uint_eq(rd_u8(&rd), 0); /* the fifth byte is not handed out after a short read */
}
END_TEST

START_TEST(buffers_grow_and_stop_at_their_cap) {
    struct buf buf = {.max = 10};
    ck_assert_str_eq(buf_cstr(&buf), "");
    buf_printf(&buf, "%s", "0123456789");
    ck_assert(!buf.failed);
    ck_assert_str_eq(buf_cstr(&buf), "0123456789");
    buf_putc(&buf, 'x');
    ck_assert(buf.failed && buf_cstr(&buf) == NULL);
    buf_free(&buf);
}
END_TEST

START_TEST(arenas_align_zero_and_stop_at_their_cap) {
    struct arena arena = {.max = 1 << 20};
    for (size_t i = 1; i < 2000; i++) {
        char *text = arena_text(&arena, "abc", i % 4);
        ck_assert_uint_eq(strlen(text), i % 4);
        uint64_t *words = arena_alloc(&arena, i % 7 + 1, 8);
        ck_assert_uint_eq((uintptr_t)words % 16, 0);
        ck_assert_uint_eq(words[i % 7], 0);
    }
    ck_assert_ptr_null(arena_alloc(&arena, 2 << 20, 1));
    ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX, 2));
    arena_free(&arena);
}
END_TEST

START_TEST(utf8_is_judged_as_rfc_3629_does) {
    static const struct {
        const char *bytes;
        size_t len;
        bool good;
    } cases[] = {
        {"", 0, true},
        {"a\0b", 3, true},
        {"\xc3\xa9", 2, true},
        {"\xf4\x8f\xbf\xbf", 4, true},
        {"\xf4\x90\x80\x80", 4, false},
        {"\xed\xa0\x80", 3, false},
        {"\xc0\x80", 2, false},
        {"\xe0\x9f\xbf", 3, false},
        {"\xf0\x8f\xbf\xbf", 4, false},
        {"\xe2\x82", 2, false},
        {"\xff", 1, false},
        {"\x80", 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(text_is_utf8(cases[i].bytes, cases[i].len) == cases[i].good, "case %zu", i);
}
END_TEST

START_TEST(sizes_and_hex) {
    uint64_t n = 1;
    ck_assert(text_size("64M", &n) && n == 64u << 20);
    ck_assert(text_size("18446744073709551615", &n) && n == UINT64_MAX);
    ck_assert(!text_size("18446744073709551616", &n) && !text_size("", &n) && !text_size("1X", &n));
    ck_assert(!text_size("1MB", &n) && !text_size("16777216T", &n) && !text_size("-1", &n));
    uint8_t bytes[2];
    char hex[5];
    ck_assert(text_unhex("aF09", 2, bytes) && !text_unhex("aF0", 2, bytes) && !text_unhex("aF0g", 2, bytes));
    text_hex(bytes, 2, hex);
    ck_assert_str_eq(hex, "af09");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("base");
    TCase *tcase = tcase_create("base");
    tcase_add_test(tcase, errors_carry_verdict_and_context);
    tcase_add_test(tcase, long_messages_are_cut_not_overrun);
    tcase_add_test(tcase, checked_arithmetic);
    tcase_add_test(tcase, cursor_never_reads_past_the_end);
    tcase_add_test(tcase, buffers_grow_and_stop_at_their_cap);
    tcase_add_test(tcase, arenas_align_zero_and_stop_at_their_cap);
    tcase_add_test(tcase, utf8_is_judged_as_rfc_3629_does);
    tcase_add_test(tcase, sizes_and_hex);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
