/* SPDX-License-Identifier: Apache-2.0 */
/* What ckpt diff is made of: the source that hashes on the way, matching by name, distances. */
#include "faulty.h"
#include "pack/compare.h"
#include "pack/match.h"
#include "pack/members.h"
#include "unit.h"
#include "verify/stream.h"

#include <math.h>

/* ---- the stream ---------------------------------------------------------------------------------------- */

static const struct range sections[] = {{100, 1000}, {1100, 300005}, {301105, 3000077}};
#define CONFIG_AT 100
#define TENSORS_AT 1100
#define WEIGHTS_AT 301105
#define END 3301182

struct scene {
    struct faulty *faulty;
    struct unit_table table;
    struct guard *guard;
    struct source *stream;
    struct asker asker;
    struct ckpt_cancel cancel;
    uint8_t *buf;
};

static void scene_over(struct scene *scene, uint64_t chunk, enum ckpt_verify_mode mode) {
    const struct guard_options options = {.mode = mode};
    *scene = (struct scene){.faulty = faulty_new(END), .buf = malloc(END)};
    scene->cancel = (struct ckpt_cancel){asker_asked, &scene->asker};
    scene->table =
        chunk ? chunks_over(scene->faulty, CONFIG_AT, chunk) : sections_over(scene->faulty, sections, 3);
    ck_assert_int_eq(
        guard_new(&scene->faulty->source, &scene->table, NULL, &options, &scene->guard, NULL), 0);
    ck_assert_int_eq(
        stream_source(scene->guard, &scene->faulty->source, &scene->cancel, &scene->stream, NULL), 0);
}

static void scene_end(struct scene *scene) {
    source_close(scene->stream);
    guard_free(scene->guard);
    source_close(&scene->faulty->source);
    table_free(&scene->table);
    free(scene->buf);
}

static void read_ok(struct scene *scene, uint64_t off, size_t len) {
    struct ckpt_err err = {0};
    int rc = source_read(scene->stream, off, scene->buf, len, &err);
    ck_assert_msg(rc == 0, "%zu bytes at %llu: %s", len, (unsigned long long)off, err.msg);
    ck_assert_mem_eq(scene->buf, scene->faulty->bytes + off, len);
}

static void settles(struct scene *scene) {
    struct ckpt_err err = {0};
    int rc = stream_settle(scene->stream, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
}

START_TEST(forward_reads_read_everything_once) {
    struct scene scene;
    scene_over(&scene, 0, CKPT_VERIFY_LAZY);
    scene.faulty->watched = WEIGHTS_AT + 1000000;
    for (uint64_t at = CONFIG_AT; at < END; at += 70001)
        read_ok(&scene, at, (size_t)ovf_min(70001, END - at)); /* over the borders of sections */
    settles(&scene);
    ck_assert_uint_eq(scene.faulty->watched_reads, 1);
    ck_assert_int_eq(guard_unit_state(scene.guard, 2), UNIT_UNKNOWN); /* the guard knows nothing of it */
    scene_end(&scene);
}
END_TEST

START_TEST(what_is_left_out_is_hashed_too) {
    struct scene scene;
    scene_over(&scene, 0, CKPT_VERIFY_LAZY);
    scene.faulty->watched = WEIGHTS_AT + 1000000;
    read_ok(&scene, WEIGHTS_AT + 2000000, 10);
    ck_assert_uint_eq(scene.faulty->watched_reads, 1);
    read_ok(&scene, TENSORS_AT + 5, 10); /* another section goes its own way */
    read_ok(&scene, WEIGHTS_AT + 2000010, 10);
    settles(&scene);
    ck_assert_uint_eq(scene.faulty->watched_reads, 1);
    scene.faulty->bytes[CONFIG_AT] ^= 1; /* nothing was read of it */
    settles(&scene);
    scene_end(&scene);
}
END_TEST

START_TEST(reads_that_go_back_are_the_guards) {
    struct scene scene;
    scene_over(&scene, 0, CKPT_VERIFY_LAZY);
    read_ok(&scene, WEIGHTS_AT + 10000, 10000);
    unsigned reads = scene.faulty->reads;
    read_ok(&scene, WEIGHTS_AT + 68, 100); /* heads are kept */
    ck_assert_uint_eq(scene.faulty->reads, reads);
    read_ok(&scene, WEIGHTS_AT + 9000, 100);
    ck_assert_int_eq(guard_unit_state(scene.guard, 2), UNIT_VERIFIED);
    read_ok(&scene, WEIGHTS_AT + 20000, 1000);
    settles(&scene);
    scene_end(&scene);
}
END_TEST

static const uint64_t damaged[] = {WEIGHTS_AT, WEIGHTS_AT + 5000, WEIGHTS_AT + 3000076};

START_TEST(damage_is_found_in_the_end) {
    struct scene scene;
    struct ckpt_err err = {0};
    scene_over(&scene, 0, CKPT_VERIFY_LAZY);
    scene.faulty->bytes[damaged[_i]] ^= 4;
    ck_assert_int_eq(source_read(scene.stream, WEIGHTS_AT + 100, scene.buf, 10000, &err), 0);
    ck_assert_int_eq(stream_settle(scene.stream, &err), CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "section payload checksum mismatch");
    scene_end(&scene);
    scene_over(&scene, 0, CKPT_VERIFY_LAZY); /* and by whoever reads to the end */
    scene.faulty->bytes[damaged[_i]] ^= 4;
    ck_assert_int_eq(
        source_read(scene.stream, WEIGHTS_AT, scene.buf, END - WEIGHTS_AT, &err), CKPT_E_CORRUPT);
    scene_end(&scene);
}
END_TEST

START_TEST(chunks_and_no_digests_are_left_to_the_guard) {
    struct scene scene;
    struct ckpt_err err = {0};
    scene_over(&scene, 100000, CKPT_VERIFY_LAZY);
    read_ok(&scene, CONFIG_AT, END - CONFIG_AT);
    read_ok(&scene, CONFIG_AT + 7, 1000);
    settles(&scene);
    scene_end(&scene);
    scene_over(&scene, 100000, CKPT_VERIFY_LAZY);
    scene.faulty->bytes[CONFIG_AT + 250000] ^= 1;
    ck_assert_int_eq(source_read(scene.stream, CONFIG_AT + 200000, scene.buf, 10, &err), CKPT_E_MISMATCH);
    scene_end(&scene);
    scene_over(&scene, 0, CKPT_VERIFY_OFF);
    scene.faulty->bytes[WEIGHTS_AT] ^= 1;
    read_ok(&scene, 0, END);
    settles(&scene);
    scene_end(&scene);
}
END_TEST

START_TEST(streams_stop_when_asked_and_say_what_failed) {
    struct scene scene;
    struct ckpt_err err = {0};
    scene_over(&scene, 0, CKPT_VERIFY_LAZY);
    scene.asker.stop = true;
    ck_assert_int_eq(source_read(scene.stream, WEIGHTS_AT, scene.buf, 10, &err), CKPT_E_INTR);
    scene.asker.stop = false;
    read_ok(&scene, WEIGHTS_AT, 10);
    scene.asker.stop = true;
    ck_assert_int_eq(stream_settle(scene.stream, &err), CKPT_E_INTR);
    scene.asker.stop = false;
    settles(&scene);
    scene.faulty->bad_off = TENSORS_AT + 100;
    scene.faulty->bad_times = 1;
    ck_assert_int_eq(source_read(scene.stream, TENSORS_AT + 50, scene.buf, 100, &err), CKPT_E_IO);
    read_ok(&scene, TENSORS_AT + 50, 100); /* it goes on where it was */
    settles(&scene);
    ck_assert_int_eq(source_read(scene.stream, 50, scene.buf, 10, &err), CKPT_E_INVAL);
    ck_assert_int_eq(source_read(scene.stream, END - 5, scene.buf, 10, &err), CKPT_E_CHANGED);
    scene_end(&scene);
}
END_TEST

/* ---- names --------------------------------------------------------------------------------------------- */

static struct tensor named(const char *name) {
    return (struct tensor){.name = name, .name_len = (uint32_t)strlen(name)};
}

START_TEST(names_are_matched) {
    struct tensor left[] = {named("b"), named("a"), named("ab"), named("")};
    struct tensor right[] = {named("ab"), named("c"), named("b"), named("a\x01"), named("b")};
    struct group a = {.items = left, .count = 4}, b = {.items = right, .count = 5}, none = {0};
    const uint64_t a_wants[] = {2, MATCH_NONE, 0, MATCH_NONE};
    const uint64_t b_wants[] = {2, MATCH_NONE, 0, MATCH_NONE, MATCH_NONE};
    struct match match;
    ck_assert_int_eq(match_make(&a, &b, &match, NULL), 0);
    ck_assert_mem_eq(match.partner_of_a, a_wants, sizeof a_wants);
    ck_assert_mem_eq(match.partner_of_b, b_wants, sizeof b_wants);
    match_free(&match);
    ck_assert_int_eq(match_make(&a, &none, &match, NULL), 0);
    ck_assert_uint_eq(match.partner_of_a[3], MATCH_NONE);
    match_free(&match);
}
END_TEST

START_TEST(members_are_compared_by_what_they_mean) {
    static const char one[] = "{\"b\": \"\\u00e9\", \"a\": 1, \"n\": {\"x\": [1, 2]}, \"a\": 2}";
    static const char other[] = "{\"a\":2,\"b\":\"\xc3\xa9\",\"n\":{\"x\": [1, 2]}}";
    struct arena arena = {0};
    struct members a, b;
    ck_assert_int_eq(members_read(one, strlen(one), &arena, &a, NULL), 0);
    ck_assert_int_eq(members_read(other, strlen(other), &arena, &b, NULL), 0);
    ck_assert(a.is_object && b.is_object);
    ck_assert_uint_eq(a.count, 3); /* of two with one key, the last */
    ck_assert_uint_eq(b.count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(members_order(&a.items[i], &b.items[i]), 0);
        ck_assert(members_same(&a.items[i], &b.items[i]));
    }
    members_free(&a);
    members_free(&b);
    static const char *const others[] = {"[1]", "null", "", "{\"a\":", "{\"a\":1,", "{\"a\" 1}"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert_int_eq(members_read(others[i], strlen(others[i]), &arena, &a, NULL), 0);
        ck_assert_msg(!a.is_object && a.count == 0, "%s", others[i]);
        members_free(&a);
    }
    arena_free(&arena);
}
END_TEST

/* ---- distances ----------------------------------------------------------------------------------------- */

START_TEST(sums_lose_nothing) {
    double a[1000], zero[1000] = {0};
    struct tally tally = {0};
    for (int i = 0; i < 1000; i++)
        a[i] = i == 0 ? 0x1p60 : 1;
    for (int i = 0; i < 10; i++)
        compare(DTYPE_F64, (uint8_t *)a, DTYPE_F64, (uint8_t *)zero, 1000, &tally);
    ck_assert(compare_mean(&tally) == (10 * 0x1p60 + 9990) / 10000);
    ck_assert_uint_eq(tally.differing, 10000);
    ck_assert(tally.max == 0x1p60);
    uint64_t most[2] = {UINT64_MAX, UINT64_MAX}, least[2] = {0, 0};
    tally = (struct tally){0};
    compare(DTYPE_U64, (uint8_t *)most, DTYPE_U64, (uint8_t *)least, 2, &tally);
    compare_same(2, &tally);
    ck_assert_uint_eq(tally.max_integer, UINT64_MAX);
    ck_assert(compare_mean(&tally) == 0x1p63 && !tally.over);
    int64_t below[2] = {-2, -1};
    tally = (struct tally){0};
    compare(DTYPE_U64, (uint8_t *)most, DTYPE_I64, (uint8_t *)below, 2, &tally);
    ck_assert(tally.over && tally.max == 0x1p64);
}
END_TEST

/* Every float16 against its double. */
START_TEST(halves_are_exact) {
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits, none = 0;
        int exponent = half >> 10 & 31, mantissa = half & 1023;
        struct tally tally = {0};
        compare(DTYPE_F16, (uint8_t *)&half, DTYPE_F16, (uint8_t *)&none, 1, &tally);
        double wanted = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
        if (exponent == 31)
            wanted = mantissa ? 0 : (double)INFINITY;
        ck_assert_msg(tally.max == wanted && tally.nans == (exponent == 31 && mantissa != 0),
            "%04x: %g, not %g", half, tally.max, wanted);
        ck_assert_uint_eq(tally.differing, half != 0);
    }
}
END_TEST

/* Outputs that nobody asked for. */
START_TEST(a_count_that_nobody_wants) {
    char path[512];
    struct ckpt *a, *b;
    struct ckpt_err err = {0};
    uint64_t count = 0;
    ck_assert_int_eq(
        ckpt_open(unit_golden(path, sizeof path, "oam/quantized/small_q4.oam"), NULL, &a, &err), 0);
    ck_assert_int_eq(
        ckpt_open(unit_golden(path, sizeof path, "oam/quantized/small_q8.oam"), NULL, &b, &err), 0);
    ck_assert_int_eq(ckpt_diff(a, b, NULL, NULL, NULL, NULL, &err), 0);
    ck_assert_int_eq(ckpt_diff(a, b, NULL, NULL, NULL, &count, &err), 0);
    ck_assert_uint_gt(count, 0);
    ckpt_close(a);
    ckpt_close(b);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("diff");
    TCase *tcase = tcase_create("diff");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, forward_reads_read_everything_once);
    tcase_add_test(tcase, what_is_left_out_is_hashed_too);
    tcase_add_test(tcase, reads_that_go_back_are_the_guards);
    tcase_add_loop_test(tcase, damage_is_found_in_the_end, 0, 3);
    tcase_add_test(tcase, chunks_and_no_digests_are_left_to_the_guard);
    tcase_add_test(tcase, streams_stop_when_asked_and_say_what_failed);
    tcase_add_test(tcase, names_are_matched);
    tcase_add_test(tcase, members_are_compared_by_what_they_mean);
    tcase_add_test(tcase, sums_lose_nothing);
    tcase_add_test(tcase, halves_are_exact);
    tcase_add_test(tcase, a_count_that_nobody_wants);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
