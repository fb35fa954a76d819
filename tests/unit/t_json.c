/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "unit.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char document[] =
    " {\"a\" : 1, \"b\":[true,false,null,-0.5e+10, \"\\ud83d\\ude00 \\u00e9\\n\xc3\xa9\"],\r\n"
    "\t\"c\":{\"d\":{}, \"e\":[]} }";

/* Judges a copy of exactly len bytes, so that a sanitizer sees any read past them. */
static bool valid(const char *text, size_t len) {
    char *copy = malloc(len ? len : 1);
    memcpy(copy, text, len);
    bool good = json_valid(copy, len);
    free(copy);
    return good;
}

/* Reads to the end; the reader stays open for its value, error and offsets. */
static enum json_event read_all(struct json *json, const char *text) {
    json_start(json, text, strlen(text));
    enum json_event event;
    do
        event = json_next(json);
    while (event != JSON_END && event != JSON_ERROR);
    return event;
}

START_TEST(events_come_in_order_with_their_values) {
    static const struct {
        enum json_event event;
        const char *value;
    } wanted[] = {{JSON_OBJECT, ""}, {JSON_KEY, "a"}, {JSON_NUMBER, "1"}, {JSON_KEY, "b"}, {JSON_ARRAY, ""},
        {JSON_TRUE, ""}, {JSON_FALSE, ""}, {JSON_NULL, ""}, {JSON_NUMBER, "-0.5e+10"},
        {JSON_STRING, "\xf0\x9f\x98\x80 \xc3\xa9\n\xc3\xa9"}, {JSON_ARRAY_END, ""}, {JSON_KEY, "c"},
        {JSON_OBJECT, ""}, {JSON_KEY, "d"}, {JSON_OBJECT, ""}, {JSON_OBJECT_END, ""}, {JSON_KEY, "e"},
        {JSON_ARRAY, ""}, {JSON_ARRAY_END, ""}, {JSON_OBJECT_END, ""}, {JSON_OBJECT_END, ""}, {JSON_END, ""},
        {JSON_END, ""}};
    struct json json;
    json_start(&json, document, strlen(document));
    for (size_t i = 0; i < COUNT(wanted); i++) {
        ck_assert_msg(json_next(&json) == wanted[i].event, "event %zu", i);
        ck_assert_msg(json.value_len == strlen(wanted[i].value), "value %zu", i);
        if (json.value_len)
            ck_assert(!memcmp(json.value, wanted[i].value, json.value_len));
    }
    json_stop(&json);
}
END_TEST

START_TEST(each_prefix_of_a_document_is_malformed) {
    size_t len = strlen(document);
    ck_assert(valid(document, len));
    for (size_t cut = 0; cut < len; cut++)
        ck_assert_msg(!valid(document, cut), "cut at %zu", cut);
}
END_TEST

START_TEST(well_formed_texts) {
    static const char *const texts[] = {"0", "-0", "1", "-12.50", "1e5", "1E-05", "0.1e+007", "true", "false",
        "null", "\"\"", "[]", "{}", " \t\r\n[ ] \t\r\n", "[[],{},[{}]]", "{\"\":{\"\":0},\"\":1}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\"", "\"\\uD800\\uDC00\\udbff\\udfff\"",
        "\"\x7f\xf4\x8f\xbf\xbf\"", "123456789012345678901234567890123456789012345678901234567890"};
    for (size_t i = 0; i < COUNT(texts); i++)
        ck_assert_msg(valid(texts[i], strlen(texts[i])), "%s", texts[i]);
}
END_TEST

START_TEST(malformed_texts) {
    static const char *const texts[] = {/* numbers */
        "01", "-01", "-", "+1", ".5", "1.", "1.e5", "1e", "1e+", "0x10", "1_0", "00", "--1", "1-1",
        /* words */
        "NaN", "Infinity", "-Infinity", "nul", "nulll", "True", "truefalse", "undefined",
        /* containers */
        "[", "]", "{", "}", "[}", "{]", "[1,]", "[,1]", "[1 2]", "[1,,2]", "{\"a\"}", "{\"a\":}", "{\"a\" 1}",
        "{\"a\":1,}", "{,}", "{\"a\":1 \"b\":2}", "{1:2}", "{a:1}", "{'a':1}", "{\"a\":1]", "[\"a\":1]", ":",
        ",", "{\"a\"::1}", "{null:1}", "{[]:1}",
        /* what follows the value */
        "1 2", "[] []", "{}x", "{}}", "null,", "\"\"\"", "[]\xc2\xa0", "[]\v", "[]\f", "", " ", "// x\n1",
        "/**/1",
        /* strings */
        "\"", "\"\\\"", "\"\\", "\"\\x41\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\u\"", "\"\\U0041\"", "\"\\'\"",
        "\"a\nb\"", "\"a\tb\"", "\"\x1f\"", "'a'",
        /* halves of surrogate pairs */
        "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800x\"", "\"\\ud800\\n\"", "\"\\ud800\\u0041\"",
        "\"\\ud800\\ud800\"", "\"\\udc00\\ud800\"", "\"\\ud800\\u\"", "\"\\ud800\\",
        /* UTF-8, also cut in two by an escape; a byte order mark */
        "\"\xff\"", "\"\xc3\"", "\"\xc3\\n\xa9\"", "\"\\n\xa9\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\"",
        "{\"\xff\":1}", "\xef\xbb\xbf{}", "\xc3\xa9"};
    for (size_t i = 0; i < COUNT(texts); i++)
        ck_assert_msg(!valid(texts[i], strlen(texts[i])), "case %zu: %s", i, texts[i]);
    ck_assert(!valid("[]\0", 3));
    ck_assert(!valid("\0[]", 3));
    ck_assert(!valid("\"a\0b\"", 5));
    ck_assert(!valid("\"\\\0\"", 4));
}
END_TEST

START_TEST(nesting_is_bounded_and_counted) {
    size_t million = 1000000;
    char *text = malloc(million);
    memset(text, '[', million);
    struct json json;
    json_start(&json, text, million);
    ck_assert_int_eq(json_skip(&json, json_next(&json)), JSON_ERROR);
    ck_assert_str_eq(json.error, "nested deeper than 960");
    ck_assert_uint_eq(json_offset(&json), JSON_DEPTH_MAX);
    json_stop(&json);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    ck_assert(valid(text, (size_t)2 * JSON_DEPTH_MAX));
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    text[JSON_DEPTH_MAX] = '[';
    ck_assert(!valid(text, (size_t)2 * JSON_DEPTH_MAX + 2));
    for (size_t i = 0; i < million; i++)
        text[i] = "{\"a\":"[i % 5];
    ck_assert(!valid(text, million));
    for (size_t i = 0; i < million; i++)
        text[i] = "[],"[i % 3];             /* many beside each other are no depth */
    text[1] = '0', text[million - 2] = ']'; /* "[0,[],[],...,[]]" */
    ck_assert(valid(text, million - 1));
    free(text);
}
END_TEST

START_TEST(containers_close_with_their_own_bracket_at_every_depth) {
    char text[8 * JSON_DEPTH_MAX];
    for (unsigned depth = 1; depth <= JSON_DEPTH_MAX; depth += depth < 70 ? 1 : 89) {
        size_t len = 0;
        for (unsigned d = 0; d < depth; d++)
            len += (size_t)sprintf(text + len, d % 3 ? "{\"\":" : "[");
        text[len++] = '1';
        for (unsigned d = depth; d-- > 0;)
            text[len++] = d % 3 ? '}' : ']';
        ck_assert(valid(text, len));
        for (size_t at = len - depth; at < len; at++) {
            text[at] ^= '}' ^ ']';
            ck_assert_msg(!valid(text, len), "depth %u, bracket %zu", depth, at);
            text[at] ^= '}' ^ ']';
        }
    }
}
END_TEST

START_TEST(errors_stay_and_say_where) {
    struct json json;
    ck_assert_int_eq(read_all(&json, "{\"a\":[1,x]}"), JSON_ERROR);
    ck_assert_uint_eq(json_offset(&json), 8);
    ck_assert_str_eq(json.error, "a value was expected");
    ck_assert_int_eq(json_next(&json), JSON_ERROR);
    ck_assert_str_eq(json.error, "a value was expected");
    ck_assert_uint_eq(json_offset(&json), 8);
    json_stop(&json);
    ck_assert_int_eq(read_all(&json, "[\"a\\u00e9"), JSON_ERROR);
    ck_assert_str_eq(json.error, "a string without an end");
    json_stop(&json);
}
END_TEST

START_TEST(a_value_is_passed_through_as_its_text) {
    static const char text[] = "{ \"a\" :  {\"x\": [1, {\"y\":\"}\"}] } ,\"b\": -1e5 , \"c\":\"\\n\"}";
    static const char *const wanted[] = {"{\"x\": [1, {\"y\":\"}\"}] }", "-1e5", "\"\\n\""};
    struct json json;
    json_start(&json, text, strlen(text));
    ck_assert_int_eq(json_next(&json), JSON_OBJECT);
    for (size_t i = 0; i < COUNT(wanted); i++) {
        ck_assert_int_eq(json_next(&json), JSON_KEY);
        ck_assert_int_eq(json_skip(&json, JSON_KEY), JSON_KEY);
        enum json_event event = json_next(&json);
        size_t start = json_token(&json);
        ck_assert_int_eq(json_skip(&json, event), event);
        ck_assert_uint_eq(json_offset(&json) - start, strlen(wanted[i]));
        ck_assert(!memcmp(text + start, wanted[i], strlen(wanted[i])));
    }
    ck_assert_int_eq(json_next(&json), JSON_OBJECT_END);
    ck_assert_int_eq(json_next(&json), JSON_END);
    json_stop(&json);
    json_start(&json, "[{\"a\":[1,}]", 11);
    ck_assert_int_eq(json_skip(&json, json_next(&json)), JSON_ERROR);
    json_stop(&json);
}
END_TEST

START_TEST(text_without_escapes_is_not_copied) {
    static const char text[] = "[\"plain \xc3\xa9\",\"a\\u0000b\",\"\\n\",\"\"]";
    struct json json;
    json_start(&json, text, strlen(text));
    json_next(&json);
    ck_assert_int_eq(json_next(&json), JSON_STRING);
    ck_assert_ptr_eq(json.value, text + 2);
    ck_assert(
        json_is(&json, "plain \xc3\xa9") && !json_is(&json, "plain") && !json_is(&json, "plain \xc3\xa9!"));
    ck_assert_int_eq(json_next(&json), JSON_STRING);
    ck_assert_uint_eq(json.value_len, 3);
    ck_assert(!memcmp(json.value, "a\0b", 3));
    ck_assert(!json_is(&json, "a"));
    ck_assert_int_eq(json_next(&json), JSON_STRING);
    ck_assert(json_is(&json, "\n")); /* nothing is left of the string before */
    ck_assert_int_eq(json_next(&json), JSON_STRING);
    ck_assert(json_is(&json, ""));
    ck_assert_int_eq(json_next(&json), JSON_ARRAY_END);
    ck_assert(!json_is(&json, ""));
    json_stop(&json);
}
END_TEST

START_TEST(repeated_keys_are_reported_each_time) {
    struct json json;
    json_start(&json, "{\"a\":1,\"\\u0061\":2}", 18);
    json_next(&json);
    for (uint64_t i = 1; i <= 2; i++) {
        uint64_t value;
        ck_assert_int_eq(json_next(&json), JSON_KEY);
        ck_assert(json_is(&json, "a"));
        ck_assert(json_next(&json) == JSON_NUMBER && json_u64(&json, &value) && value == i);
    }
    json_stop(&json);
}
END_TEST

/* The cap of its buffer stands for memory that runs out. */
START_TEST(a_want_of_memory_says_nothing_of_the_text) {
    static const char text[] = "[[\"\\u0061bcdefgh\", \"\\n\"], 1, \"\\u0061bcdefgh\"]";
    struct ckpt_err err = {0};
    struct json json;
    json_start(&json, text, strlen(text));
    json.scratch.max = 4;
    ck_assert_int_eq(json_next(&json), JSON_ARRAY);
    ck_assert_int_eq(json_skip(&json, json_next(&json)), JSON_ARRAY); /* needs none */
    ck_assert_int_eq(json_next(&json), JSON_NUMBER);
    ck_assert_int_eq(json_no_memory(&json, &err), 0);
    ck_assert_int_eq(json_next(&json), JSON_ERROR);
    ck_assert_int_eq(json_no_memory(&json, &err), CKPT_E_NOMEM);
    ck_assert_int_eq(err.code, CKPT_E_NOMEM);
    json_stop(&json);
    ck_assert_int_eq(read_all(&json, "[\"\\u0061\\x\"]"), JSON_ERROR);
    ck_assert_int_eq(json_no_memory(&json, &err), 0);
    json_stop(&json);
}
END_TEST

START_TEST(integers_are_exact_or_refused) {
    static const struct {
        const char *text;
        bool u, i;
        uint64_t value;
    } cases[] = {{"0", true, true, 0}, {"12", true, true, 12},
        {"9007199254740993", true, true, 9007199254740993u}, {"9223372036854775807", true, true, INT64_MAX},
        {"9223372036854775808", true, false, (uint64_t)INT64_MAX + 1},
        {"18446744073709551615", true, false, UINT64_MAX}, {"18446744073709551616", false, false, 0},
        {"184467440737095516150", false, false, 0}, {"99999999999999999999999999999", false, false, 0},
        {"-1", false, true, UINT64_MAX}, {"-9223372036854775808", false, true, (uint64_t)INT64_MAX + 1},
        {"-9223372036854775809", false, false, 0}, {"-18446744073709551615", false, false, 0},
        {"-0", false, false, 0}, {"1e1", false, false, 0}, {"12.0", false, false, 0},
        {"\"12\"", false, false, 0}, {"true", false, false, 0}, {"[12]", false, false, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct json json;
        uint64_t u = 77;
        int64_t s = 77;
        json_start(&json, cases[i].text, strlen(cases[i].text));
        json_next(&json);
        ck_assert_msg(json_u64(&json, &u) == cases[i].u, "u64 %s", cases[i].text);
        ck_assert_msg(u == (cases[i].u ? cases[i].value : 77), "u64 %s", cases[i].text);
        ck_assert_msg(json_i64(&json, &s) == cases[i].i, "i64 %s", cases[i].text);
        ck_assert_msg((uint64_t)s == (cases[i].i ? cases[i].value : 77), "i64 %s", cases[i].text);
        json_stop(&json);
    }
}
END_TEST

START_TEST(python_takes_other_documents) {
    static const char *const taken[] = {"{\"a\":\"\\ud800\"}", "[\"\\udc00x\"]", "[\"\\ud83d\\u0041\"]",
        "[\"\\uD83d\\n\"]", "{\"\\ud800\":1}", "[\"\\udc00\\ud83d\"]", "[\"\\ud83d\\ud83d\\ude00\"]"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        ck_assert_msg(json_python(taken[i], strlen(taken[i])), "%s", taken[i]);
        ck_assert_msg(!json_valid(taken[i], strlen(taken[i])), "%s", taken[i]);
    }
    static const char *const refused[] = {"[\"\\ud80\"]", "[\"\\ud83d\\u00\"]", "[\"\\ud83d\\x\"]", "[NaN]"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        ck_assert_msg(!json_python(refused[i], strlen(refused[i])), "%s", refused[i]);
    char digits[4400];
    for (int sign = 0; sign < 2; sign++)
        for (int count = 4299; count < 4303; count++) {
            int len = 2 + sign + count;
            memcpy(digits, "[-", 2);
            memset(digits + 1 + sign, '7', (size_t)count);
            digits[len - 1] = ']';
            ck_assert_msg(json_python(digits, (size_t)len) == (count <= 4300), "%d digits", count);
            ck_assert(json_valid(digits, (size_t)len));
            digits[2 + sign] = '.';
            ck_assert(json_python(digits, (size_t)len));
        }
}
END_TEST

START_TEST(a_lower_limit_of_nesting_counts) {
    struct json json;
    json_start(&json, "[[[]]]", 6);
    json.depth_max = 2;
    ck_assert_int_eq(json_skip(&json, json_next(&json)), JSON_ERROR);
    ck_assert_str_eq(json.error, "nested deeper than 2");
    json_stop(&json);
}
END_TEST

START_TEST(written_strings_read_back) {
    static const char text[] = "a\"b\\c/\b\n\0\x1f\x7f\xc3\xa9";
    struct buf buf = {0};
    json_put_string(&buf, text, sizeof text - 1);
    ck_assert_str_eq(buf_cstr(&buf), "\"a\\\"b\\\\c/\\b\\n\\u0000\\u001f\x7f\xc3\xa9\"");
    struct json json;
    json_start(&json, buf.bytes, buf.len);
    ck_assert_int_eq(json_next(&json), JSON_STRING);
    ck_assert_uint_eq(json.value_len, sizeof text - 1);
    ck_assert(!memcmp(json.value, text, sizeof text - 1));
    ck_assert_int_eq(json_next(&json), JSON_END);
    json_stop(&json);
    buf_clear(&buf);
    json_put_string(&buf, "", 0);
    ck_assert_str_eq(buf_cstr(&buf), "\"\"");
    buf_free(&buf);
}
END_TEST

START_TEST(written_floats_are_the_shortest_that_read_back) {
    static const struct {
        float value;
        const char *text;
    } cases[] = {{0, "0"}, {-0.0f, "-0"}, {1, "1"}, {0.1f, "0.1"}, {-2.5f, "-2.5"}, {1e-5f, "1e-05"},
        {100, "1e+02"}, {16777216, "16777216"}, {0.0003f, "0.0003"}, {3.40282347e38f, "3.4028235e+38"},
        {1e-45f, "1e-45"}, {0.333333343f, "0.33333334"}, {NAN, "\"NaN\""}, {-NAN, "\"NaN\""},
        {INFINITY, "\"Infinity\""}, {-INFINITY, "\"-Infinity\""}};
    struct buf buf = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        buf_clear(&buf);
        json_put_f32(&buf, cases[i].value);
        ck_assert_str_eq(buf_cstr(&buf), cases[i].text);
        ck_assert(valid(buf.bytes, buf.len));
    }
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 0x000fffffu) {
        float value;
        memcpy(&value, &bits, sizeof value);
        buf_clear(&buf);
        json_put_f32(&buf, value);
        ck_assert(strtof(buf_cstr(&buf), NULL) == value);
    }
    buf_free(&buf);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("json");
    TCase *tcase = tcase_create("json");
    tcase_add_test(tcase, events_come_in_order_with_their_values);
    tcase_add_test(tcase, each_prefix_of_a_document_is_malformed);
    tcase_add_test(tcase, well_formed_texts);
    tcase_add_test(tcase, malformed_texts);
    tcase_add_test(tcase, nesting_is_bounded_and_counted);
    tcase_add_test(tcase, containers_close_with_their_own_bracket_at_every_depth);
    tcase_add_test(tcase, errors_stay_and_say_where);
    tcase_add_test(tcase, a_value_is_passed_through_as_its_text);
    tcase_add_test(tcase, text_without_escapes_is_not_copied);
    tcase_add_test(tcase, repeated_keys_are_reported_each_time);
    tcase_add_test(tcase, a_want_of_memory_says_nothing_of_the_text);
    tcase_add_test(tcase, integers_are_exact_or_refused);
    tcase_add_test(tcase, python_takes_other_documents);
    tcase_add_test(tcase, a_lower_limit_of_nesting_counts);
    tcase_add_test(tcase, written_strings_read_back);
    tcase_add_test(tcase, written_floats_are_the_shortest_that_read_back);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
