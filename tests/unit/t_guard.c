/* SPDX-License-Identifier: Apache-2.0 */
#include "faulty.h"
#include "unit.h"
#include "verify/guard.h"
#include "verify/span.h"

#include <sys/wait.h>
#include <unistd.h>

#define BLOCK GUARD_BLOCK_BYTES
#define B (8 * BLOCK)

#ifdef __has_feature /* clang's way to say it */
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

struct log_lines {
    atomic_uint count;
    char last[1200];
};

static void log_say(void *arg, const char *line) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* units are found damaged on several threads */
    struct log_lines *lines = arg;
    pthread_mutex_lock(&lock);
    lines->count++;
    snprintf(lines->last, sizeof lines->last, "%s", line);
    pthread_mutex_unlock(&lock);
}

/* What every test needs. */
struct scene {
    struct faulty *faulty;
    struct unit_table table;
    uint8_t *truth; /* the bytes as they were */
    struct log_lines log;
    struct guard *guard;
};

static void scene_guard(struct scene *scene, enum ckpt_verify_mode mode, uint64_t cache_bytes) {
    const struct guard_options options = {
        .mode = mode, .cache_bytes = cache_bytes, .log = {.say = log_say, .arg = &scene->log}};
    struct ckpt_err err = {0};
    int rc = guard_new(&scene->faulty->source, &scene->table, NULL, &options, &scene->guard, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
}

static void scene_begin(struct scene *scene, uint64_t size) {
    *scene = (struct scene){.faulty = faulty_new(size), .truth = malloc(size + 1)};
    memcpy(scene->truth, scene->faulty->bytes, size);
}

static void chunk_scene(struct scene *scene, uint64_t size, uint64_t base, uint64_t chunk) {
    scene_begin(scene, size);
    scene->table = chunks_over(scene->faulty, base, chunk);
    scene_guard(scene, CKPT_VERIFY_LAZY, 0);
}

/* Two large sections, a small one, and a gap before all of them. */
enum { CONFIG, TENSORS, WEIGHTS };
static const struct range sections[] = {{100, 1000}, {1100, 3 * B + 5}, {3 * B + 1105, 20 * B + 77}};
#define SECTIONS_END (23 * B + 1182)

static void section_scene(struct scene *scene, enum ckpt_verify_mode mode) {
    scene_begin(scene, SECTIONS_END);
    scene->table = sections_over(scene->faulty, sections, 3);
    scene_guard(scene, mode, 0);
}

static void scene_end(struct scene *scene) {
    guard_free(scene->guard);
    source_close(&scene->faulty->source);
    table_free(&scene->table);
    free(scene->truth);
}

static int read_at(struct scene *scene, uint64_t off, size_t len, struct ckpt_err *err) {
    uint8_t *buf = malloc(len + 1);
    buf[len] = 0xa5;
    int rc = guard_read(scene->guard, off, buf, len, NULL, err);
    if (rc == 0)
        ck_assert_msg(memcmp(buf, scene->truth + off, len) == 0, "other bytes at %llu, length %zu",
            (unsigned long long)off, len);
    ck_assert_uint_eq(buf[len], 0xa5);
    free(buf);
    return rc;
}

static void read_ok(struct scene *scene, uint64_t off, size_t len) {
    struct ckpt_err err = {0};
    int rc = read_at(scene, off, len, &err);
    ck_assert_msg(rc == 0, "read at %llu, length %zu: %s", (unsigned long long)off, len, err.msg);
}

static void read_fails(struct scene *scene, uint64_t off, size_t len, int code, const char *words) {
    struct ckpt_err err = {0};
    ck_assert_int_eq(read_at(scene, off, len, &err), code);
    ck_assert_int_eq(err.code, code);
    ck_assert_msg(strstr(err.msg, words) != NULL, "'%s' has no '%s'", err.msg, words);
}

/* ---- exactness --------------------------------------------------------------------------------------- */

static void read_around(
    struct scene *scene, const uint64_t *edges, size_t count, uint64_t from, uint64_t to) {
    for (size_t a = 0; a < count; a++)
        for (size_t b = a; b < count; b++)
            for (uint64_t i = 0; i < 9; i++) {
                uint64_t off = edges[a] + i % 3 - 1, end = edges[b] + i / 3 - 1;
                if (off >= from && off <= end && end <= to)
                    read_ok(scene, off, (size_t)(end - off));
            }
}

START_TEST(chunks_are_exact_at_every_edge) {
    static const uint64_t chunks[] = {
        1, 16, 1000, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 777, B + 1};
    struct scene scene;
    uint64_t chunk = chunks[_i], size = 4096 + 3 * chunk + chunk / 2 + 1;
    chunk_scene(&scene, size, 4096, chunk);
    const uint64_t edges[] = {4096, 4096 + 1, 4096 + chunk, 4096 + 2 * chunk,
        4096 + ovf_min(BLOCK, chunk / 2), 4096 + 3 * chunk, size};
    read_around(&scene, edges, sizeof edges / sizeof *edges, 4096, size);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){4096, size - 4096}), UNIT_VERIFIED);
    scene_end(&scene);
}
END_TEST

START_TEST(many_tiny_chunks_work) {
    struct scene scene;
    chunk_scene(&scene, 1 << 20, 4096, _i == 0 ? 1 : 13);
    read_ok(&scene, 4096, (1 << 20) - 4096); /* hashed by several threads */
    ck_assert_uint_eq(scene.faulty->reads, 1);
    read_ok(&scene, 5000, 70001);
    struct guard_tally tally;
    guard_tally(scene.guard, &tally);
    ck_assert_uint_eq(tally.verified, tally.units);
    ck_assert_uint_eq(tally.bytes_verified, (1 << 20) - 4096);
    scene_end(&scene);
}
END_TEST

START_TEST(sections_are_exact_and_what_lies_between_is_refused) {
    static const struct range ranges[] = {
        {5000, 5 * B + 3}, {0, 0}, {100, 100}, {200, B}, {B + 200, B + 1}, {100, 0}, {2 * B + 201, 1}};
    struct scene scene;
    scene_begin(&scene, 9 * B);
    struct range moved[7];
    memcpy(moved, ranges, sizeof moved);
    moved[0].off = 3 * B; /* listed first, lies last */
    scene.table = sections_over(scene.faulty, moved, 7);
    scene_guard(&scene, CKPT_VERIFY_LAZY, 0);
    const uint64_t low[] = {100, 200, B + 200, 2 * B + 200, 2 * B + 201, 2 * B + 202};
    const uint64_t high[] = {3 * B, 4 * B, 7 * B + 1, 8 * B, 8 * B + 3};
    read_around(&scene, low, 6, 100, 2 * B + 202);
    read_around(&scene, high, 5, 3 * B, 8 * B + 3);
    read_fails(&scene, 99, 2, CKPT_E_INVAL, "no digest covers");
    read_fails(&scene, 2 * B + 200, 3, CKPT_E_INVAL, "no digest covers");
    read_fails(&scene, 8 * B, 4, CKPT_E_INVAL, "no digest covers");
    read_fails(&scene, UINT64_MAX, 4, CKPT_E_INVAL, "no range");
    read_ok(&scene, 0, 0);
    scene_end(&scene);
}
END_TEST

START_TEST(sequential_reads_that_straddle_blocks_read_each_block_once) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    uint64_t start = sections[WEIGHTS].off;
    read_ok(&scene, start, 1);
    scene.faulty->watched = start + 5 * B; /* first byte of a block */
    for (uint64_t at = start + 1; at + B < SECTIONS_END; at += B)
        read_ok(&scene, at, B);
    ck_assert_uint_eq(scene.faulty->watched_reads, 1);
    scene_end(&scene);
}
END_TEST

/* Its digests in 16 KiB blocks would take more than an eighth of the cache. */
START_TEST(little_memory_means_larger_blocks) {
    struct scene scene;
    struct ckpt_err err = {0};
    scene_begin(&scene, SECTIONS_END);
    scene.table = sections_over(scene.faulty, sections, 3);
    scene_guard(&scene, CKPT_VERIFY_LAZY, 4096);
    uint64_t start = sections[WEIGHTS].off;
    const uint64_t edges[] = {
        start + 1, start + BLOCK, start + 4 * BLOCK, start + 9 * BLOCK, SECTIONS_END - 1};
    read_around(&scene, edges, 5, start, SECTIONS_END);
    scene.faulty->bytes[start + 7 * BLOCK] ^= 1;
    read_ok(&scene, start, (size_t)(4 * BLOCK));
    ck_assert_int_eq(read_at(&scene, start + 4 * BLOCK, 1, &err), CKPT_E_CORRUPT);
    scene_end(&scene);
}
END_TEST

START_TEST(short_preads_do_no_harm) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    scene.faulty->piece = 7777;
    read_ok(&scene, 100, SECTIONS_END - 100);
    scene_end(&scene);
}
END_TEST

START_TEST(tables_that_leave_the_source_are_refused) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    const struct guard_options options = {0};
    struct guard *guard = NULL;
    struct unit units[1] = {scene.table.list[0]};
    struct unit_table table = {.list = units, .count = 1};
    units[0].at = (struct range){SECTIONS_END - 1, 2};
    ck_assert_int_eq(guard_new(&scene.faulty->source, &table, NULL, &options, &guard, NULL), CKPT_E_INVAL);
    units[0].at = (struct range){UINT64_MAX, 2};
    ck_assert_int_eq(guard_new(&scene.faulty->source, &table, NULL, &options, &guard, NULL), CKPT_E_INVAL);
    static const uint8_t digests[2][32];
    table = (struct unit_table){.count = 2, .total = 10, .chunk = 0, .digests = digests};
    ck_assert_int_eq(guard_new(&scene.faulty->source, &table, NULL, &options, &guard, NULL), CKPT_E_INVAL);
    table.chunk = 10;
    ck_assert_int_eq(guard_new(&scene.faulty->source, &table, NULL, &options, &guard, NULL), CKPT_E_INVAL);
    ck_assert_ptr_null(guard);
    scene_end(&scene);
}
END_TEST

/* ---- damage ------------------------------------------------------------------------------------------ */

START_TEST(one_flipped_bit_costs_one_section) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    scene.faulty->bytes[sections[TENSORS].off + 2 * B] ^= 0x10;
    uint8_t found[32], expected[32];
    char hex[17];
    ck_assert(!guard_unit_found(scene.guard, TENSORS, found));
    for (int i = 0; i < 2; i++)
        read_fails(&scene, sections[TENSORS].off, 1, CKPT_E_CORRUPT, "section payload checksum mismatch");
    read_fails(&scene, 500, B, CKPT_E_CORRUPT, "tensors section at offset 1100, length 393221");
    read_ok(&scene, 100, 1000);
    read_ok(&scene, sections[WEIGHTS].off, (size_t)sections[WEIGHTS].len);
    ck_assert_uint_eq(scene.log.count, 1);
    ck_assert(guard_unit_found(scene.guard, TENSORS, found));
    ck_assert_int_eq(hash_bytes(HASH_FNV1A64, scene.faulty->bytes + sections[TENSORS].off,
                         (size_t)sections[TENSORS].len, expected, NULL),
        0);
    ck_assert_mem_eq(found, expected, 8);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 2 * i, 3, "%02x", found[i]);
    ck_assert_ptr_nonnull(strstr(scene.log.last, hex));
    scene.faulty->bytes[sections[TENSORS].off + 2 * B] ^= 0x10;
    read_fails(&scene, sections[TENSORS].off, 1, CKPT_E_CORRUPT, "checksum mismatch"); /* it stays so */
    scene_end(&scene);
}
END_TEST

START_TEST(one_flipped_bit_costs_one_chunk) {
    static const uint64_t sizes[] = {1, 16, 1000, 50000, B, B + 1, 3 * B};
    struct scene scene;
    uint64_t chunk = sizes[_i];
    chunk_scene(&scene, 10 * chunk + (chunk + 1) / 2, 0, chunk);
    scene.faulty->bytes[7 * chunk] ^= 1;
    for (int i = 0; i < 2; i++)
        read_fails(&scene, 6 * chunk, (size_t)(2 * chunk), CKPT_E_MISMATCH, "chunk-mismatch 7: chunk 7 at");
    read_fails(&scene, 8 * chunk - 1, 2, CKPT_E_MISMATCH, "chunk-mismatch 7");
    read_ok(&scene, 0, (size_t)(7 * chunk));
    read_ok(&scene, 8 * chunk, (size_t)(2 * chunk + (chunk + 1) / 2));
    ck_assert_uint_eq(scene.log.count, 1);
    ck_assert_int_eq(guard_unit_state(scene.guard, 7), UNIT_CORRUPT);
    ck_assert_int_eq(guard_unit_state(scene.guard, 8), UNIT_VERIFIED);
    scene_end(&scene);
}
END_TEST

START_TEST(a_shared_run_names_its_first_fault) {
    struct scene scene;
    chunk_scene(&scene, 1 << 20, 0, 4096);
    scene.faulty->bytes[200 * 4096] ^= 1;
    scene.faulty->bytes[50 * 4096] ^= 1;
    read_fails(&scene, 0, 1 << 20, CKPT_E_MISMATCH, "chunk-mismatch 50");
    scene_end(&scene);
}
END_TEST

START_TEST(a_bad_source_is_not_listed_without_end) {
    struct scene scene;
    chunk_scene(&scene, 5000, 0, 1);
    for (unsigned i = 0; i < 5000; i++)
        scene.faulty->bytes[i] ^= 1;
    read_fails(&scene, 0, 5000, CKPT_E_MISMATCH, "chunk-mismatch 0: ");
    struct guard_tally tally;
    guard_tally(scene.guard, &tally);
    ck_assert_uint_eq(tally.corrupt, 5000);
    ck_assert_uint_lt(scene.log.count, 2000);
    ck_assert_msg(strstr(scene.log.last, "more damaged units") != NULL, "%s", scene.log.last);
    for (unsigned i = 0; i < 5000; i += 499) { /* refused all the same, and named */
        char words[40];
        snprintf(words, sizeof words, "chunk-mismatch %u: chunk %u at", i, i);
        read_fails(&scene, i, 1, CKPT_E_MISMATCH, words);
    }
    scene_end(&scene);
}
END_TEST

START_TEST(a_large_unit_that_changes_later_is_never_served) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    uint64_t start = sections[WEIGHTS].off;
    uint8_t found[32];
    read_ok(&scene, start, 1);
    scene.faulty->bytes[start + 4 * B + 9] ^= 1;
    read_ok(&scene, start, (size_t)(4 * B)); /* those before are still what was verified */
    if (_i == 0)
        read_fails(&scene, start + 4 * B, B, CKPT_E_CORRUPT, "differs from what was verified");
    else
        read_fails(&scene, start + 4 * B + 50, 1, CKPT_E_CORRUPT, "block at offset");
    read_fails(&scene, start, 1, CKPT_E_CORRUPT, "weights section");
    ck_assert_uint_eq(scene.log.count, 1);
    ck_assert(!guard_unit_found(scene.guard, WEIGHTS, found));
    ck_assert_int_eq(guard_unit_state(scene.guard, WEIGHTS), UNIT_CORRUPT);
    struct guard_tally tally;
    guard_tally(scene.guard, &tally);
    ck_assert(tally.verified == 0 && tally.corrupt == 1 && tally.bytes_verified == 0);
    read_ok(&scene, sections[TENSORS].off, (size_t)sections[TENSORS].len);
    scene_end(&scene);
}
END_TEST

START_TEST(a_small_unit_that_changes_later_is_never_served) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    read_ok(&scene, 100, 1000);
    scene.faulty->bytes[600] ^= 1;
    read_fails(&scene, 100, 1000, CKPT_E_CORRUPT, "config section");
    read_fails(&scene, 100, 1, CKPT_E_CORRUPT, "config section");
    ck_assert_uint_eq(scene.log.count, 1);
    scene_end(&scene);
}
END_TEST

START_TEST(a_source_that_shrinks_gives_errors_never_zeros) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    scene.faulty->size_now = SECTIONS_END - 1;
    read_fails(&scene, sections[WEIGHTS].off, 1, CKPT_E_CORRUPT, "source ended");
    ck_assert_int_eq(guard_unit_state(scene.guard, WEIGHTS), UNIT_UNKNOWN);
    scene.faulty->size_now = SECTIONS_END;
    read_ok(&scene, sections[WEIGHTS].off, 1);
    read_ok(&scene, 100, 1000);
    scene.faulty->size_now = 600;
    read_fails(&scene, sections[WEIGHTS].off + 2 * B, B, CKPT_E_CORRUPT, "source ended");
    read_fails(&scene, sections[WEIGHTS].off + 2 * B + 1, 3, CKPT_E_CORRUPT, "source ended");
    read_fails(&scene, 100, 1000, CKPT_E_CORRUPT, "source ended");
    read_fails(&scene, 700, 10, CKPT_E_CORRUPT, "source ended");
    scene_end(&scene);
}
END_TEST

START_TEST(a_failing_read_is_tried_again) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    static const uint64_t offs[] = {600, 1100 + B, 3 * B + 1105 + 19 * B};
    for (int i = 0; i < 3; i++) {
        scene.faulty->bad_off = offs[i];
        scene.faulty->bad_times = 1;
        struct ckpt_err err = {0};
        ck_assert_int_eq(read_at(&scene, offs[i], 10, &err), CKPT_E_IO);
        ck_assert_int_eq(err.os_errno, EIO);
        ck_assert_int_eq(guard_unit_state(scene.guard, (uint64_t)i), UNIT_UNKNOWN);
        read_ok(&scene, offs[i], 10);
    }
    ck_assert_uint_eq(scene.log.count, 0);
    scene_end(&scene);
}
END_TEST

/* ---- many readers ------------------------------------------------------------------------------------ */

struct reader {
    struct scene *scene;
    uint64_t off;
    size_t len;
    struct asker asker;
    pthread_t thread;
    int rc;
};

static void *reader_run(void *arg) {
    struct reader *reader = arg;
    const struct ckpt_cancel cancel = {asker_asked, &reader->asker};
    uint8_t *buf = malloc(reader->len);
    struct ckpt_err err = {0};
    reader->rc = guard_read(reader->scene->guard, reader->off, buf, reader->len, &cancel, &err);
    if (reader->rc == 0 && memcmp(buf, reader->scene->truth + reader->off, reader->len) != 0)
        reader->rc = 1;
    free(buf);
    return NULL;
}

static void reader_start(struct reader *reader, struct scene *scene, uint64_t off, size_t len) {
    *reader = (struct reader){.scene = scene, .off = off, .len = len};
    ck_assert_int_eq(pthread_create(&reader->thread, NULL, reader_run, reader), 0);
}

static int reader_end(struct reader *reader) {
    pthread_join(reader->thread, NULL);
    return reader->rc;
}

#define W_START (3 * B + 1105)
#define W_LAST (SECTIONS_END - 1)

START_TEST(many_readers_share_one_pass) {
    struct scene scene;
    struct reader readers[12];
    section_scene(&scene, CKPT_VERIFY_LAZY);
    scene.faulty->watched = W_LAST - B; /* not in the block that they want */
    faulty_gate(scene.faulty, W_LAST);
    for (int i = 0; i < 12; i++)
        reader_start(&readers[i], &scene, W_START + (uint64_t)i, 1);
    faulty_await_held(scene.faulty);
    for (int i = 0; i < 12; i++)
        asker_await(&readers[i].asker);
    faulty_open_gate(scene.faulty);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(reader_end(&readers[i]), 0);
    ck_assert_uint_eq(scene.faulty->watched_reads, 1);
    scene_end(&scene);
}
END_TEST

START_TEST(the_pass_outlives_the_reader_that_began_it) {
    struct scene scene;
    struct reader first, second;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    scene.faulty->watched = W_START + B;
    faulty_gate(scene.faulty, W_START + 10 * B);
    reader_start(&first, &scene, W_START, 1);
    faulty_await_held(scene.faulty);
    reader_start(&second, &scene, W_START + 5 * B, 1000);
    asker_await(&second.asker);
    first.asker.stop = true;
    ck_assert_int_eq(reader_end(&first), CKPT_E_INTR);
    faulty_open_gate(scene.faulty);
    ck_assert_int_eq(reader_end(&second), 0);
    ck_assert_uint_eq(scene.faulty->watched_reads, 1);
    scene_end(&scene);
}
END_TEST

START_TEST(a_pass_that_all_gave_up_goes_on_later) {
    struct scene scene;
    struct reader readers[3];
    section_scene(&scene, CKPT_VERIFY_LAZY);
    scene.faulty->watched = W_START + B;
    faulty_gate(scene.faulty, W_START + 10 * B);
    for (int i = 0; i < 3; i++)
        reader_start(&readers[i], &scene, W_START, 1);
    faulty_await_held(scene.faulty);
    for (int i = 0; i < 3; i++)
        readers[i].asker.stop = true;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(reader_end(&readers[i]), CKPT_E_INTR);
    ck_assert_int_eq(guard_unit_state(scene.guard, WEIGHTS), UNIT_UNKNOWN);
    read_ok(&scene, 100, 1000); /* the others do not care */
    faulty_open_gate(scene.faulty);
    read_ok(&scene, W_LAST, 1);
    ck_assert_uint_eq(scene.faulty->watched_reads, 1); /* what was hashed was not hashed again */
    scene_end(&scene);
}
END_TEST

START_TEST(a_guard_may_be_freed_while_a_given_up_pass_runs) {
    struct scene scene;
    struct reader reader;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    faulty_gate(scene.faulty, W_START + 10 * B);
    reader_start(&reader, &scene, W_START, 1);
    faulty_await_held(scene.faulty);
    reader.asker.stop = true;
    ck_assert_int_eq(reader_end(&reader), CKPT_E_INTR);
    faulty_open_gate(scene.faulty);
    scene_end(&scene);
}
END_TEST

START_TEST(all_readers_hear_of_a_failure) {
    struct scene scene;
    struct reader readers[4];
    section_scene(&scene, CKPT_VERIFY_LAZY);
    scene.faulty->bad_off = W_LAST;
    scene.faulty->bad_times = 1;
    faulty_gate(scene.faulty, W_START + 10 * B);
    for (int i = 0; i < 4; i++)
        reader_start(&readers[i], &scene, W_START, 1);
    faulty_await_held(scene.faulty);
    for (int i = 0; i < 4; i++)
        asker_await(&readers[i].asker);
    faulty_open_gate(scene.faulty);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(reader_end(&readers[i]), CKPT_E_IO);
    read_ok(&scene, W_START, 1);
    scene_end(&scene);
}
END_TEST

/* Chunks of one request run beside each other: the second is held up while the first one passes. */
START_TEST(the_units_of_a_request_are_verified_side_by_side) {
    struct scene scene;
    struct reader reader;
    chunk_scene(&scene, 8 * B, 0, 2 * B);
    faulty_gate(scene.faulty, B); /* in chunk 0 */
    reader_start(&reader, &scene, 0, 8 * B);
    faulty_await_held(scene.faulty);
    while (guard_unit_state(scene.guard, 3) != UNIT_VERIFIED)
        sched_yield();
    faulty_open_gate(scene.faulty);
    ck_assert_int_eq(reader_end(&reader), 0);
    scene_end(&scene);
}
END_TEST

START_TEST(a_stream_is_verified_ahead) {
    struct scene scene;
    chunk_scene(&scene, 16 * B, 0, B);
    read_ok(&scene, 0, B);
    read_ok(&scene, 8 * B, B); /* here and there: nothing is begun */
    for (uint64_t i = 1; i < 16; i++)
        ck_assert_int_eq(guard_unit_state(scene.guard, i), i == 8 ? UNIT_VERIFIED : UNIT_UNKNOWN);
    read_ok(&scene, B, B); /* goes on */
    for (uint64_t i = 2; i < 6; i++)
        while (guard_unit_state(scene.guard, i) != UNIT_VERIFIED)
            sched_yield();
    for (uint64_t i = 6; i < 16; i++) /* four times as far as it has come, and no further */
        ck_assert_int_eq(guard_unit_state(scene.guard, i), i == 8 ? UNIT_VERIFIED : UNIT_UNKNOWN);
    scene_end(&scene);
}
END_TEST

struct wanderer {
    struct scene *scene;
    uint64_t seed;
    pthread_t thread;
};

static void *wander(void *arg) {
    struct wanderer *wanderer = arg;
    struct scene *scene = wanderer->scene;
    uint64_t x = wanderer->seed, size = scene->faulty->source.size;
    uint8_t *buf = malloc(3 * B);
    for (int i = 0; i < 60; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint64_t off = (x >> 20) % size;
        size_t len = (size_t)ovf_min((x >> 40) % (3 * B), size - off);
        if (guard_read(scene->guard, off, buf, len, NULL, NULL) != 0 ||
            memcmp(buf, scene->truth + off, len) != 0)
            abort();
    }
    free(buf);
    return NULL;
}

START_TEST(many_threads_read_exactly) {
    static const uint64_t chunks[] = {777, 100000, 300000, 1500000};
    struct scene scene;
    struct wanderer wanderers[8];
    scene_begin(&scene, 5 << 20);
    scene.table = chunks_over(scene.faulty, 0, chunks[_i]);
    scene_guard(&scene, CKPT_VERIFY_LAZY, 3 * B);
    for (unsigned i = 0; i < 8; i++) {
        wanderers[i] = (struct wanderer){.scene = &scene, .seed = i + 1};
        ck_assert_int_eq(pthread_create(&wanderers[i].thread, NULL, wander, &wanderers[i]), 0);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(wanderers[i].thread, NULL);
    scene_end(&scene);
}
END_TEST

START_TEST(a_child_starts_threads_of_its_own) {
#ifndef __SANITIZE_THREAD__ /* which cannot follow a fork */
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    read_ok(&scene, sections[TENSORS].off, 10);
    pid_t child = fork();
    if (child == 0) {
        uint8_t byte;
        int rc = guard_read(scene.guard, W_START, &byte, 1, NULL, NULL);
        guard_free(scene.guard);
        _exit(rc == 0 && byte == scene.truth[W_START] ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    scene_end(&scene);
#endif
}
END_TEST

/* ---- modes ------------------------------------------------------------------------------------------- */

START_TEST(off_checks_nothing_but_lengths) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_OFF);
    scene.faulty->bytes[W_START] ^= 1;
    scene.truth[W_START] ^= 1;
    read_ok(&scene, 0, SECTIONS_END);
    ck_assert_int_eq(guard_check_all(scene.guard, false, NULL, NULL, NULL), 0);
    ck_assert_int_eq(guard_check_unit(scene.guard, WEIGHTS, NULL, NULL), 0);
    ck_assert_int_eq(guard_start(scene.guard, NULL), 0);
    ck_assert_int_eq(guard_range_state(scene.guard, sections[WEIGHTS]), UNIT_UNKNOWN);
    scene.faulty->mtime = 7;
    read_ok(&scene, 0, 10);
    scene.faulty->size_now = 100;
    read_fails(&scene, 99, 2, CKPT_E_CHANGED, "ended");
    scene_end(&scene);
}
END_TEST

START_TEST(without_digests_a_change_is_an_error) {
    struct scene scene;
    scene_begin(&scene, 1000);
    scene_guard(&scene, CKPT_VERIFY_LAZY, 0);
    read_ok(&scene, 3, 997);
    ck_assert_int_eq(guard_check_all(scene.guard, false, NULL, NULL, NULL), 0);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){0, 10}), UNIT_UNKNOWN);
    scene.faulty->mtime = 1;
    read_fails(&scene, 3, 5, CKPT_E_CHANGED, "modified");
    scene.faulty->mtime = 0;
    scene.faulty->size_now = 999;
    read_fails(&scene, 3, 5, CKPT_E_CHANGED, "999");
    read_fails(&scene, 3, 997, CKPT_E_CHANGED, "999");
    scene_end(&scene);
}
END_TEST

static void await_verified(struct scene *scene, uint64_t units) {
    struct guard_tally tally;
    do {
        sched_yield();
        guard_tally(scene->guard, &tally);
    } while (tally.verified + tally.corrupt < units);
}

START_TEST(the_background_verifies_everything) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_BACKGROUND);
    scene.faulty->bytes[1100] ^= 1;
    ck_assert_uint_eq(scene.faulty->reads, 0);
    ck_assert_int_eq(guard_start(scene.guard, NULL), 0);
    ck_assert_int_eq(guard_start(scene.guard, NULL), 0); /* once is enough */
    await_verified(&scene, 3);
    ck_assert_int_eq(guard_unit_state(scene.guard, TENSORS), UNIT_CORRUPT);
    ck_assert_uint_eq(scene.log.count, 1);
    read_ok(&scene, W_START, 100);
    scene_end(&scene);
}
END_TEST

START_TEST(the_background_gives_way_to_readers) {
    struct scene scene;
    struct reader reader;
    section_scene(&scene, CKPT_VERIFY_BACKGROUND);
    scene.faulty->watched = W_START + B;
    faulty_gate(scene.faulty, W_START + 10 * B);
    ck_assert_int_eq(guard_start(scene.guard, NULL), 0);
    faulty_await_held(scene.faulty);
    ck_assert_int_eq(scene.faulty->watched_policy, SCHED_IDLE);
    scene.faulty->watched = W_LAST;
    reader_start(&reader, &scene, W_START, 1);
    asker_await(&reader.asker);
    faulty_open_gate(scene.faulty);
    ck_assert_int_eq(reader_end(&reader), 0);
    ck_assert_uint_eq(scene.faulty->watched_reads, 2);           /* nothing was read twice ... */
    ck_assert_int_eq(scene.faulty->watched_policy, SCHED_OTHER); /* ... and the rest not at idle priority */
    scene_end(&scene);
}
END_TEST

START_TEST(the_background_stops_when_asked) {
    struct scene scene;
    scene_begin(&scene, SECTIONS_END);
    scene.table = sections_over(scene.faulty, sections, 3);
    scene_guard(&scene, CKPT_VERIFY_BACKGROUND, 0);
    ck_assert_int_eq(guard_start(scene.guard, NULL), 0);
    scene_end(&scene);
}
END_TEST

/* ---- checking ---------------------------------------------------------------------------------------- */

struct told {
    uint64_t done, total;
    bool fell;
};

static void note_progress(void *arg, uint64_t done, uint64_t total) {
    struct told *told = arg;
    told->fell = told->fell || done < told->done || done > total;
    told->done = done;
    told->total = total;
}

START_TEST(check_all_finds_the_first_fault_in_order) {
    static const uint64_t chunks[] = {1000, 65536, 200000};
    struct scene scene;
    struct ckpt_err err = {0};
    uint64_t chunk = chunks[_i], unit = 0;
    chunk_scene(&scene, 40 * chunk + 1, 0, chunk);
    for (uint64_t bad = 37; bad > 20; bad -= 4)
        scene.faulty->bytes[bad * chunk + 5] ^= 1;
    ck_assert_int_eq(guard_check_all(scene.guard, false, NULL, NULL, &err), CKPT_E_MISMATCH);
    ck_assert_str_eq(err.words, "chunk-mismatch 21");
    struct told told = {0};
    const struct ckpt_progress progress = {note_progress, &told};
    ck_assert_int_eq(guard_check_all(scene.guard, true, NULL, &progress, &err), CKPT_E_MISMATCH);
    ck_assert_str_eq(err.words, "chunk-mismatch 21");
    ck_assert(!told.fell && told.done == told.total && told.total == 40 * chunk + 1);
    struct guard_tally tally;
    guard_tally(scene.guard, &tally);
    ck_assert(tally.units == 41 && tally.corrupt == 5 && tally.verified == 36);
    ck_assert(tally.bytes == 40 * chunk + 1 && tally.bytes_verified == 35 * chunk + 1);
    for (uint64_t n = 0; n < 5; n++)
        ck_assert(guard_corrupt_unit(scene.guard, n, &unit) && unit == 21 + 4 * n);
    ck_assert(!guard_corrupt_unit(scene.guard, 5, &unit));
    ck_assert_uint_eq(scene.log.count, 5);
    unsigned reads = scene.faulty->reads;
    ck_assert_int_eq(guard_check_all(scene.guard, true, NULL, NULL, NULL), CKPT_E_MISMATCH);
    ck_assert_uint_eq(scene.faulty->reads, reads); /* everything is known */
    scene_end(&scene);
}
END_TEST

START_TEST(a_bad_spot_does_not_hide_the_units_beside_it) {
    struct scene scene;
    struct ckpt_err err = {0};
    chunk_scene(&scene, 100 * 1000, 0, 1000);
    scene.faulty->bytes[10 * 1000] ^= 1;
    scene.faulty->bad_off = 50 * 1000;
    scene.faulty->bad_times = 1000;
    ck_assert_int_eq(guard_check_all(scene.guard, false, NULL, NULL, &err), CKPT_E_MISMATCH);
    ck_assert_str_eq(err.words, "chunk-mismatch 10");
    struct guard_tally tally;
    guard_tally(scene.guard, &tally);
    ck_assert(tally.verified == 98 && tally.corrupt == 1);
    ck_assert_int_eq(guard_check_unit(scene.guard, 50, NULL, &err), CKPT_E_IO);
    ck_assert_int_eq(guard_check_unit(scene.guard, 10, NULL, &err), CKPT_E_MISMATCH);
    ck_assert_int_eq(guard_check_unit(scene.guard, 100, NULL, &err), CKPT_E_INVAL);
    scene_end(&scene);
}
END_TEST

START_TEST(check_all_counts_sections_without_bytes) {
    static const struct range ranges[] = {{10, 0}, {10, 5}, {15, 0}};
    struct scene scene;
    scene_begin(&scene, 100);
    scene.table = sections_over(scene.faulty, ranges, 3);
    ((struct unit *)(uintptr_t)scene.table.list)[2].digest[0] ^= 1;
    scene_guard(&scene, CKPT_VERIFY_FULL, 0);
    struct ckpt_err err = {0};
    ck_assert_int_eq(guard_check_all(scene.guard, true, NULL, NULL, &err), CKPT_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.msg, "weights section at offset 15, length 0"));
    ck_assert_int_eq(guard_unit_state(scene.guard, 0), UNIT_VERIFIED);
    ck_assert_int_eq(guard_unit_state(scene.guard, 2), UNIT_CORRUPT);
    scene_end(&scene);
}
END_TEST

struct opener {
    struct asker *asker;
    struct faulty *faulty;
};

static void *open_when_asked(void *arg) {
    struct opener *opener = arg;
    asker_await(opener->asker);
    faulty_open_gate(opener->faulty);
    return NULL;
}

START_TEST(check_all_can_be_interrupted) {
    struct scene scene;
    struct asker asker = {.stop = true};
    const struct ckpt_cancel cancel = {asker_asked, &asker};
    struct ckpt_err err = {0};
    section_scene(&scene, CKPT_VERIFY_FULL);
    faulty_gate(scene.faulty, W_START); /* opened when the wish to stop was asked for */
    struct opener opener = {&asker, scene.faulty};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, open_when_asked, &opener), 0);
    ck_assert_int_eq(guard_check_all(scene.guard, false, &cancel, NULL, &err), CKPT_E_INTR);
    pthread_join(thread, NULL);
    ck_assert_int_eq(guard_check_all(scene.guard, false, NULL, NULL, &err), 0);
    scene_end(&scene);
}
END_TEST

START_TEST(states_of_ranges_are_the_worst_of_their_units) {
    struct scene scene;
    section_scene(&scene, CKPT_VERIFY_LAZY);
    scene.faulty->bytes[1100] ^= 1;
    struct range all = {100, SECTIONS_END - 100};
    ck_assert_int_eq(guard_range_state(scene.guard, all), UNIT_UNKNOWN);
    read_ok(&scene, 100, 1000);
    read_ok(&scene, W_START, 1);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){100, 1000}), UNIT_VERIFIED);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){99, 10}), UNIT_UNKNOWN);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){W_START - 1, 3}), UNIT_UNKNOWN);
    read_fails(&scene, 1100, 1, CKPT_E_CORRUPT, "mismatch");
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){W_START - 1, 3}), UNIT_CORRUPT);
    ck_assert_int_eq(guard_range_state(scene.guard, all), UNIT_CORRUPT);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){W_START, 3}), UNIT_VERIFIED);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){0, 0}), UNIT_VERIFIED);
    scene_end(&scene);
    chunk_scene(&scene, 10000, 96, 1000);
    read_ok(&scene, 2096, 1000);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){2096, 1000}), UNIT_VERIFIED);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){2095, 2}), UNIT_UNKNOWN);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){3095, 2}), UNIT_UNKNOWN);
    ck_assert_int_eq(guard_range_state(scene.guard, (struct range){0, 20}), UNIT_UNKNOWN);
    scene_end(&scene);
}
END_TEST

/* ---- vouching ---------------------------------------------------------------------------------------- */

struct court {
    struct scene scene;
    struct witness *witness;
    struct source *source;
    struct guard *guard;
};

/* Parses with one bit at `lie` flipped: a probe of the first bytes, the config at once, the tensors in
 * pieces. */
static void court_begin(struct court *court, uint64_t lie) {
    uint8_t *buf = malloc(4 * B), *bytes;
    section_scene(&court->scene, CKPT_VERIFY_LAZY);
    bytes = court->scene.faulty->bytes;
    ck_assert_int_eq(witness_new(&court->scene.faulty->source, &court->witness, NULL), 0);
    court->source = witness_source(court->witness);
    bytes[lie] ^= 1;
    ck_assert_int_eq(source_read(court->source, 0, buf, 4096, NULL), 0);
    ck_assert_int_eq(source_read(court->source, sections[CONFIG].off, buf, 1000, NULL), 0);
    for (uint64_t at = 0; at < sections[TENSORS].len; at += 100000)
        ck_assert_int_eq(source_read(court->source, sections[TENSORS].off + at, buf,
                             (size_t)ovf_min(100000, sections[TENSORS].len - at), NULL),
            0);
    witness_seal(court->witness);
    bytes[lie] ^= 1;
    const struct guard_options options = {0};
    ck_assert_int_eq(
        guard_new(court->source, &court->scene.table, court->witness, &options, &court->guard, NULL), 0);
    free(buf);
}

static void court_end(struct court *court) {
    guard_free(court->guard);
    source_close(court->source); /* closes the faulty one */
    witness_free(court->witness);
    guard_free(court->scene.guard);
    table_free(&court->scene.table);
    free(court->scene.truth);
}

/* The pass over the weights may be begun ahead; held at its end it shows that nobody waits for it. */
START_TEST(what_was_parsed_is_vouched_for_once) {
    struct court court;
    court_begin(&court, 0); /* the file header differed: no unit covers it */
    struct faulty *faulty = court.scene.faulty;
    faulty_gate(faulty, W_LAST);
    ck_assert_int_eq(guard_vouch(court.guard, (struct range){0, 100}, NULL, NULL), 0);
    ck_assert_int_eq(guard_vouch(court.guard, sections[CONFIG], NULL, NULL), 0);
    ck_assert_int_eq(guard_vouch(court.guard, sections[TENSORS], NULL, NULL), 0);
    ck_assert_int_eq(guard_unit_state(court.guard, WEIGHTS), UNIT_UNKNOWN);
    faulty->watched = sections[TENSORS].off + 150000;
    ck_assert_int_eq(guard_vouch(court.guard, sections[TENSORS], NULL, NULL), 0);
    ck_assert_int_eq(guard_vouch(court.guard, (struct range){5, 0}, NULL, NULL), 0);
    ck_assert_uint_eq(faulty->watched_reads, 0);
    faulty_open_gate(faulty);
    court_end(&court);
}
END_TEST

START_TEST(what_was_parsed_and_is_not_the_verified_is_found) {
    struct court court;
    struct ckpt_err err = {0};
    court_begin(&court, sections[TENSORS].off + 150000);
    ck_assert_int_eq(guard_vouch(court.guard, sections[CONFIG], NULL, &err), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(guard_vouch(court.guard, sections[TENSORS], NULL, &err), CKPT_E_CORRUPT);
        ck_assert_ptr_nonnull(strstr(err.msg, "offset 101100"));
    }
    court_end(&court);
}
END_TEST

START_TEST(vouching_for_damaged_units_says_so) {
    struct court court;
    struct ckpt_err err = {0};
    court_begin(&court, 0);
    court.scene.faulty->bytes[sections[TENSORS].off + 3] ^= 1;
    ck_assert_int_eq(guard_vouch(court.guard, sections[TENSORS], NULL, &err), CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "section payload checksum mismatch");
    ck_assert_int_eq(guard_vouch(court.guard, sections[CONFIG], NULL, &err), 0);
    court_end(&court);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("guard");
    TCase *tcase = tcase_create("guard");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, chunks_are_exact_at_every_edge, 0, 10);
    tcase_add_loop_test(tcase, many_tiny_chunks_work, 0, 2);
    tcase_add_test(tcase, sections_are_exact_and_what_lies_between_is_refused);
    tcase_add_test(tcase, sequential_reads_that_straddle_blocks_read_each_block_once);
    tcase_add_test(tcase, little_memory_means_larger_blocks);
    tcase_add_test(tcase, short_preads_do_no_harm);
    tcase_add_test(tcase, tables_that_leave_the_source_are_refused);
    tcase_add_test(tcase, one_flipped_bit_costs_one_section);
    tcase_add_loop_test(tcase, one_flipped_bit_costs_one_chunk, 0, 7);
    tcase_add_test(tcase, a_shared_run_names_its_first_fault);
    tcase_add_test(tcase, a_bad_source_is_not_listed_without_end);
    tcase_add_loop_test(tcase, a_large_unit_that_changes_later_is_never_served, 0, 2);
    tcase_add_test(tcase, a_small_unit_that_changes_later_is_never_served);
    tcase_add_test(tcase, a_source_that_shrinks_gives_errors_never_zeros);
    tcase_add_test(tcase, a_failing_read_is_tried_again);
    tcase_add_test(tcase, many_readers_share_one_pass);
    tcase_add_test(tcase, the_pass_outlives_the_reader_that_began_it);
    tcase_add_test(tcase, a_pass_that_all_gave_up_goes_on_later);
    tcase_add_test(tcase, a_guard_may_be_freed_while_a_given_up_pass_runs);
    tcase_add_test(tcase, all_readers_hear_of_a_failure);
    tcase_add_test(tcase, a_stream_is_verified_ahead);
    tcase_add_test(tcase, the_units_of_a_request_are_verified_side_by_side);
    tcase_add_loop_test(tcase, many_threads_read_exactly, 0, 4);
    tcase_add_test(tcase, a_child_starts_threads_of_its_own);
    tcase_add_test(tcase, off_checks_nothing_but_lengths);
    tcase_add_test(tcase, without_digests_a_change_is_an_error);
    tcase_add_test(tcase, the_background_verifies_everything);
    tcase_add_test(tcase, the_background_gives_way_to_readers);
    tcase_add_test(tcase, the_background_stops_when_asked);
    tcase_add_loop_test(tcase, check_all_finds_the_first_fault_in_order, 0, 3);
    tcase_add_test(tcase, a_bad_spot_does_not_hide_the_units_beside_it);
    tcase_add_test(tcase, check_all_counts_sections_without_bytes);
    tcase_add_test(tcase, check_all_can_be_interrupted);
    tcase_add_test(tcase, states_of_ranges_are_the_worst_of_their_units);
    tcase_add_test(tcase, what_was_parsed_is_vouched_for_once);
    tcase_add_test(tcase, what_was_parsed_and_is_not_the_verified_is_found);
    tcase_add_test(tcase, vouching_for_damaged_units_says_so);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
