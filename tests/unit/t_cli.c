/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/args.h"
#include "cli/doc.h"
#include "cli/out.h"
#include "unit.h"

#include <string.h>

/* What `call` writes to the stream `to`. */
#define WRITTEN(out, call)                                                                                   \
    do {                                                                                                     \
        memset(out, 0, sizeof(out));                                                                         \
        FILE *to = fmemopen(out, sizeof(out) - 1, "w");                                                      \
        call;                                                                                                \
        fclose(to);                                                                                          \
    } while (0)

START_TEST(counts_and_sizes) {
    char text[COUNT_MAX];
    ck_assert_str_eq(count_text(0, text), "0");
    ck_assert_str_eq(count_text(999, text), "999");
    ck_assert_str_eq(count_text(1000, text), "1,000");
    ck_assert_str_eq(count_text(UINT64_MAX, text), "18,446,744,073,709,551,615");
    ck_assert_str_eq(bytes_text(0, text), "0 bytes");
    ck_assert_str_eq(bytes_text(1, text), "1 byte");
    ck_assert_str_eq(bytes_text(999, text), "999 bytes");
    ck_assert_str_eq(bytes_text(1000, text), "1.00 kB");
    ck_assert_str_eq(bytes_text(9994, text), "9.99 kB");
    ck_assert_str_eq(bytes_text(9996, text), "10.0 kB");
    ck_assert_str_eq(bytes_text(99960, text), "100 kB");
    ck_assert_str_eq(bytes_text(999600, text), "1.00 MB");
    ck_assert_str_eq(bytes_text(UINT64_MAX, text), "18.4 EB");
}
END_TEST

START_TEST(control_bytes_are_escaped) {
    char out[64];
    WRITTEN(out, put_escaped(to, "a\n\033\x7f\xc2\x85\xc2\xa0\\\xc2", 10));
    ck_assert_str_eq(out, "a\\012\\033\\177\\302\\205\xc2\xa0\\\xc2");
}
END_TEST

START_TEST(json_strings_are_always_valid) {
    char out[96];
    WRITTEN(out, put_json_string(to, "a\"\\\n\x7f\xc2\x85\xc3\xa9\xf0\x9f\x98\x80"));
    ck_assert_str_eq(out, "\"a\\\"\\\\\\u000a\\u007f\\u0085\xc3\xa9\xf0\x9f\x98\x80\"");
    /* a byte alone, a cut sequence, an overlong one, a surrogate, past U+10FFFF */
    WRITTEN(out, put_json_string(to, "\x80|\xe2\x82|\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80"));
    ck_assert_ptr_null(strpbrk(out, "\x80\x82\xe2\xc0\xed\xf4\xa0\x90"));
}
END_TEST

START_TEST(members_are_found_in_place) {
    struct doc doc =
        doc_of(" {\"a\" : {\"b\": [1, {\"b\": 2}, \"x,]}\\\"\"]}, \"n\":null,\t\"big\":18446744073709551615,"
               "\"b\":true, \"e\":{}, \"minus\":-1}\n");
    uint64_t value = 7;
    ck_assert(doc_is_object(doc) && doc_count(doc) == 6);
    ck_assert(doc_u64(doc_get(doc, "big"), &value) && value == UINT64_MAX);
    ck_assert(doc_is_true(doc_get(doc, "b")) && !doc_is_true(doc_get(doc, "big")));
    ck_assert_uint_eq(doc_count(doc_get(doc_get(doc, "a"), "b")), 3);
    ck_assert_uint_eq(doc_count(doc_get(doc, "e")), 0);
    ck_assert_uint_eq(doc_get(doc, "n").len, 0);
    ck_assert_uint_eq(doc_get(doc, "none").len, 0);
    ck_assert_uint_eq(doc_get(doc_get(doc, "none"), "none").len, 0);
    ck_assert(!doc_u64(doc_get(doc, "minus"), &value) && !doc_u64(doc_get(doc, "none"), &value));
    ck_assert(!doc_u64(doc_of("18446744073709551616"), &value) && !doc_u64(doc_of("1e1"), &value));
    ck_assert_uint_eq(value, UINT64_MAX);
}
END_TEST

START_TEST(texts_are_decoded_and_cut) {
    char out[96];
    WRITTEN(out, doc_put(to, doc_of("\"a\\u0007\\n\\\"\\\\\\u00e9\\ud83d\\ude00\\u0085\xc3\xa9\""), 99));
    ck_assert_str_eq(out, "a\\007\\012\"\\\xc3\xa9\xf0\x9f\x98\x80\\302\\205\xc3\xa9");
    WRITTEN(out, doc_put(to, doc_of("\"\xc3\xa9\xc3\xa9\xc3\xa9\""), 2));
    ck_assert_str_eq(out, "\xc3\xa9\xc3\xa9...");
    WRITTEN(out, doc_put(to, doc_of("\"\xc3\xa9\xc3\xa9\""), 2));
    ck_assert_str_eq(out, "\xc3\xa9\xc3\xa9");
    WRITTEN(out, doc_put(to, doc_of("-1.5e300"), 99));
    ck_assert_str_eq(out, "-1.5e300");
    WRITTEN(out, doc_put(to, (struct doc){0}, 99));
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(values_are_laid_out) {
    char out[128];
    WRITTEN(out, doc_print(to, doc_of("{\t\"a\":[ ] ,\"b\":{\"c\":[1,\"x: ,\"]},\"d\":{}}")));
    ck_assert_str_eq(out,
        "{\n  \"a\": [],\n  \"b\": {\n    \"c\": [\n      1,\n      \"x: ,\"\n    ]\n  },\n  \"d\": {}\n}\n");
}
END_TEST

/* ---- options ----------------------------------------------------------------------------------------- */

static const struct command command = {.name = "test", .operands = "FILE"};

struct parsed {
    bool on, other;
    const char *value, *operands[2];
    int code;
};

static struct parsed parse(int argc, const char *const *words) {
    static struct parsed got;
    char *argv[8] = {(char[]){"test"}};
    got = (struct parsed){0};
    const struct option options[] = {
        {"on", 'o', &got.on, NULL}, {"other", 'p', &got.other, NULL}, {"value", 'v', NULL, &got.value}, {0}};
    for (int i = 0; i < argc; i++)
        argv[i + 1] = (char *)(uintptr_t)words[i];
    got.code = args_parse(&command, argc + 1, argv, options, 1, 2, got.operands);
    return got;
}
#define PARSE(...)                                                                                           \
    parse((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__})

START_TEST(options_stand_anywhere) {
    struct parsed got = PARSE("a", "--on", "-v", "x", "b");
    ck_assert(!got.code && got.on && !got.other);
    ck_assert_str_eq(got.value, "x");
    ck_assert_str_eq(got.operands[0], "a");
    ck_assert_str_eq(got.operands[1], "b");
    got = PARSE("-opvrest", "-");
    ck_assert(!got.code && got.on && got.other);
    ck_assert_str_eq(got.value, "rest");
    ck_assert_str_eq(got.operands[0], "-");
    ck_assert_ptr_null(got.operands[1]);
    got = PARSE("--value=", "--", "--on", "-p");
    ck_assert(!got.code && !got.on && !got.other);
    ck_assert_str_eq(got.value, "");
    ck_assert_str_eq(got.operands[0], "--on");
    ck_assert_str_eq(PARSE("--value", "--on", "a").value, "--on");
}
END_TEST

START_TEST(wrong_use_is_refused) {
    ck_assert_int_eq(PARSE("--on").code, EXIT_USAGE);        /* no operand */
    ck_assert_int_eq(PARSE("a", "b", "c").code, EXIT_USAGE); /* too many */
    ck_assert_int_eq(PARSE("a", "--o").code, EXIT_USAGE);    /* no abbreviations */
    ck_assert_int_eq(PARSE("a", "--once").code, EXIT_USAGE);
    ck_assert_int_eq(PARSE("a", "-x").code, EXIT_USAGE);
    ck_assert_int_eq(PARSE("a", "--on=1").code, EXIT_USAGE);
    ck_assert_int_eq(PARSE("a", "--value").code, EXIT_USAGE);
    ck_assert_int_eq(PARSE("a", "-v").code, EXIT_USAGE);
    ck_assert_int_eq(PARSE("a", "--=").code, EXIT_USAGE);
}
END_TEST

START_TEST(errors_have_exit_codes) {
    ck_assert_int_eq(exit_code_of(0), 0);
    ck_assert_int_eq(exit_code_of(CKPT_E_INVAL), 1);
    ck_assert_int_eq(exit_code_of(CKPT_E_IO), 2);
    ck_assert_int_eq(exit_code_of(CKPT_E_NOENT), 2);
    ck_assert_int_eq(exit_code_of(CKPT_E_NOMEM), 2);
    ck_assert_int_eq(exit_code_of(CKPT_E_LIMIT), 2);
    ck_assert_int_eq(exit_code_of(CKPT_E_FORMAT), 3);
    ck_assert_int_eq(exit_code_of(CKPT_E_CORRUPT), 3);
    ck_assert_int_eq(exit_code_of(CKPT_E_MISMATCH), 3);
    ck_assert_int_eq(exit_code_of(CKPT_E_INTR), 130);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cli");
    TCase *tcase = tcase_create("cli");
    tcase_add_test(tcase, counts_and_sizes);
    tcase_add_test(tcase, control_bytes_are_escaped);
    tcase_add_test(tcase, json_strings_are_always_valid);
    tcase_add_test(tcase, members_are_found_in_place);
    tcase_add_test(tcase, texts_are_decoded_and_cut);
    tcase_add_test(tcase, values_are_laid_out);
    tcase_add_test(tcase, options_stand_anywhere);
    tcase_add_test(tcase, wrong_use_is_refused);
    tcase_add_test(tcase, errors_have_exit_codes);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
