/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crew.h"
#include "faulty.h"
#include "unit.h"
#include "verify/cache.h"
#include "verify/feed.h"
#include "verify/ledger.h"
#include "verify/pass.h"
#include "verify/span.h"
#include "verify/witness.h"

#define K ((uint64_t)1024)

/* ---- spans ------------------------------------------------------------------------------------------- */

START_TEST(spans_hold_small_neighbours_only) {
    struct unit list[] = {{.at = {100, 50}}, {.at = {150, 0}}, {.at = {150, 60}}, {.at = {300, 5}},
        {.at = {305, 200 * K}}, {.at = {305 + 200 * K, SPAN_SMALL_BYTES}}};
    struct unit_table table = {.list = list, .count = 6};
    ck_assert_uint_eq(span_small(&table, 0, K), 3);
    ck_assert_uint_eq(span_small(&table, 0, 109), 2);
    ck_assert_uint_eq(span_small(&table, 0, 1), 1); /* one may be larger than what is wanted */
    ck_assert_uint_eq(span_small(&table, 3, K), 1);
    ck_assert_uint_eq(span_small(&table, 4, K), 0);
    ck_assert_uint_eq(span_small(&table, 5, K), 1);
    ck_assert_uint_eq(span_bytes(&table, 0, 3), 110);
    ck_assert_uint_eq(span_bytes(&table, 0, 0), 0);
    uint64_t index = 99;
    ck_assert(!span_find(&table, 99, &index) && !span_find(&table, 210, &index) && index == 99);
    ck_assert(span_find(&table, 150, &index) && index == 2);
    ck_assert(!span_find(&table, UINT64_MAX, &index));
}
END_TEST

START_TEST(spans_of_chunks_are_arithmetic) {
    static const uint8_t digests[4][32];
    struct unit_table table = {.count = 4, .base = 4096, .total = 3100, .chunk = 1000, .digests = digests};
    uint64_t index, bytes;
    ck_assert(!span_find(&table, 4095, &index) && !span_find(&table, 7196, &index));
    ck_assert(span_find(&table, 7195, &index) && index == 3);
    ck_assert_uint_eq(span_small(&table, 1, 2100), 3);
    ck_assert_uint_eq(span_small(&table, 1, 2099), 2);
    ck_assert_uint_eq(span_small(&table, 1, UINT64_MAX), 3);
    ck_assert_uint_eq(span_bytes(&table, 1, 3), 2100);
    ck_assert_int_eq(span_check(&table, 7196, &bytes, NULL), 0);
    ck_assert_uint_eq(bytes, 3100);
    ck_assert_int_eq(span_check(&table, 7195, &bytes, NULL), CKPT_E_INVAL);
    table.count = 5;
    ck_assert_int_eq(span_check(&table, 7196, &bytes, NULL), CKPT_E_INVAL);
}
END_TEST

/* ---- feeds ------------------------------------------------------------------------------------------- */

static uint64_t eat(struct faulty *faulty, uint64_t off, uint64_t len, size_t piece, int *ret_rc) {
    struct feed *feed;
    const void *bytes;
    size_t got;
    uint64_t done = 0;
    ck_assert_int_eq(feed_open(&faulty->source, off, len, piece, &feed, NULL), 0);
    struct ckpt_err err = {0};
    while ((*ret_rc = feed_next(feed, &bytes, &got, &err)) == 0 && got) {
        ck_assert_uint_eq(got, ovf_min(piece, len - done));
        ck_assert_mem_eq(bytes, faulty->bytes + off + done, got);
        done += got;
    }
    ck_assert_int_eq(err.code, *ret_rc);
    feed_close(feed);
    return done;
}

START_TEST(feeds_give_every_byte_in_order) {
    static const uint64_t lens[] = {0, 1, 100, 1000, 8192 * K, 8192 * K + 1, 9000 * K + 7};
    struct faulty *faulty = faulty_new(9001 * K);
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        int rc;
        ck_assert_uint_eq(eat(faulty, 13, lens[i], 100 * K, &rc), lens[i]);
        ck_assert_int_eq(rc, 0);
    }
    source_close(&faulty->source);
}
END_TEST

START_TEST(feeds_give_what_was_read_before_a_fault) {
    struct faulty *faulty = faulty_new(9001 * K);
    int rc;
    faulty->bad_off = 1000 * K;
    faulty->bad_times = 1;
    ck_assert_uint_eq(eat(faulty, 0, 9000 * K, 100 * K, &rc), 1000 * K);
    ck_assert_int_eq(rc, CKPT_E_IO);
    faulty->size_now = 500 * K;
    ck_assert_uint_eq(eat(faulty, 0, 9000 * K, 100 * K, &rc), 500 * K);
    ck_assert_int_eq(rc, CKPT_E_CHANGED);
    struct feed *feed; /* one that nobody empties */
    ck_assert_int_eq(feed_open(&faulty->source, 0, 9000 * K, 1000, &feed, NULL), 0);
    feed_close(feed);
    source_close(&faulty->source);
}
END_TEST

/* ---- passes ------------------------------------------------------------------------------------------ */

struct blocks {
    const uint8_t *bytes;
    uint64_t count, total;
};

static void take_block(void *arg, uint64_t index, const void *bytes, size_t len) {
    struct blocks *blocks = arg;
    ck_assert_uint_eq(index, blocks->count++);
    ck_assert_mem_eq(bytes, blocks->bytes + blocks->total, len);
    ck_assert(len == 3000 || blocks->count == (9000 * K + 2999) / 3000);
    blocks->total += len;
}

START_TEST(passes_give_every_block_once) {
    struct faulty *faulty = faulty_new(9001 * K);
    struct unit unit = section_over(faulty, (struct range){77, 9000 * K}, 2);
    struct blocks blocks = {.bytes = faulty->bytes + 77};
    const struct pass_sink sink = {3000, take_block, &blocks};
    uint8_t found[32];
    ck_assert_int_eq(pass_unit(&faulty->source, &unit, &sink, found, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(blocks.total, 9000 * K);
    ck_assert_mem_eq(found, unit.digest, 8);
    source_close(&faulty->source);
}
END_TEST

START_TEST(mismatches_say_what_the_reference_says) {
    struct faulty *faulty = faulty_new(1000);
    struct unit unit = section_over(faulty, (struct range){10, 100}, 2);
    uint8_t found[32] = {0};
    struct ckpt_err err = {0};
    memset(unit.digest, 0xab, 32);
    ck_assert_int_eq(pass_unit(&faulty->source, &unit, NULL, found, NULL, NULL, &err), CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "section payload checksum mismatch");
    ck_assert_ptr_nonnull(
        strstr(err.msg, "weights section at offset 10, length 100: expected fnv1a64:abababababababab"));
    unit.kind = DIGEST_SHA256;
    unit.label = NULL;
    unit.index = 12;
    ck_assert_int_eq(pass_unit(&faulty->source, &unit, NULL, found, NULL, NULL, &err), CKPT_E_MISMATCH);
    ck_assert_str_eq(err.words, "chunk-mismatch 12");
    ck_assert_ptr_nonnull(strstr(err.msg, "chunk 12 at offset 10, length 100: expected sha256:abab"));
    unit.at.len = 991;
    ck_assert_int_eq(pass_unit(&faulty->source, &unit, NULL, found, NULL, NULL, &err), CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "source ended");
    unit.at.off = UINT64_MAX;
    ck_assert_int_eq(pass_unit(&faulty->source, &unit, NULL, found, NULL, NULL, &err), CKPT_E_INVAL);
    unit.kind = DIGEST_NONE;
    ck_assert_int_eq(pass_unit(&faulty->source, &unit, NULL, found, NULL, NULL, &err), CKPT_E_INVAL);
    ck_assert_int_eq(pass_unit(&faulty->source, &unit, NULL, found, NULL, NULL, NULL), CKPT_E_INVAL);
    source_close(&faulty->source);
}
END_TEST

/* Says stop at every second question. */
static bool now_and_then(void *arg) {
    return ++*(unsigned *)arg % 2 == 0;
}

START_TEST(a_pass_goes_on_where_it_stopped) {
    struct faulty *faulty = faulty_new(5000 * K + 5);
    struct unit unit = section_over(faulty, (struct range){0, 5000 * K + 5}, 0);
    struct pass pass;
    unsigned questions = 0, stops = 0;
    const struct ckpt_cancel cancel = {now_and_then, &questions};
    uint8_t found[32];
    int rc;
    faulty->watched = 0;
    ck_assert_int_eq(pass_begin(&pass, &faulty->source, &unit, NULL, NULL), 0);
    while ((rc = pass_run(&pass, found, &cancel, NULL, NULL)) == CKPT_E_INTR)
        stops++;
    ck_assert_int_eq(rc, 0);
    ck_assert(stops > 3 && !pass.differs);
    ck_assert_uint_eq(faulty->watched_reads, 1);
    pass_end(&pass);
    source_close(&faulty->source);
}
END_TEST

static void note_done(void *arg, uint64_t done, uint64_t total) {
    ck_assert_uint_le(done, total);
    *(uint64_t *)arg = done;
}

START_TEST(tables_name_their_first_bad_unit) {
    static const uint64_t chunks[] = {10, 1000, 200 * K};
    uint64_t chunk = chunks[_i], done = 0;
    struct faulty *faulty = faulty_new(40 * chunk + 3);
    struct unit_table table = chunks_over(faulty, 3, chunk);
    const struct ckpt_progress progress = {note_done, &done};
    struct ckpt_err err = {0};
    ck_assert_int_eq(pass_table(&faulty->source, &table, NULL, &progress, &err), 0);
    ck_assert_uint_eq(done, 40 * chunk);
    faulty->bytes[3 + 30 * chunk] ^= 1;
    faulty->bytes[3 + 11 * chunk] ^= 1;
    ck_assert_int_eq(pass_table(&faulty->source, &table, NULL, NULL, &err), CKPT_E_MISMATCH);
    ck_assert_str_eq(err.words, "chunk-mismatch 11");
    faulty->size_now = 3 + 5 * chunk + 1; /* chunk 5 is not whole any more */
    ck_assert_int_eq(pass_table(&faulty->source, &table, NULL, NULL, &err), CKPT_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.msg, "source ended: chunk 5 at"));
    table.count = 0;
    ck_assert_int_eq(pass_table(&faulty->source, &(struct unit_table){0}, NULL, NULL, &err), 0);
    table_free(&table);
    source_close(&faulty->source);
}
END_TEST

/* ---- the ledger -------------------------------------------------------------------------------------- */

static void count_line(void *arg, const char *line) {
    (void)line;
    ++*(unsigned *)arg;
}

START_TEST(the_ledger_lists_corrupt_units_in_order) {
    static const uint8_t digests[200][32], found[32] = {1};
    struct unit_table table = {.count = 200, .total = 2000, .chunk = 10, .digests = digests};
    unsigned lines = 0;
    const struct ckpt_log log = {.say = count_line, .arg = &lines};
    struct ledger *ledger;
    uint64_t unit = 0;
    uint8_t digest[32];
    ck_assert_int_eq(ledger_new(&table, 2000, &log, &ledger, NULL), 0);
    for (uint64_t i = 0; i < 200; i++)
        ledger_differs(ledger, i * 77 % 200, found);
    ledger_changed(ledger, 5, 50);    /* known already */
    ledger_verified(ledger, 5, NULL); /* too late */
    ck_assert_uint_eq(lines, 200);
    for (uint64_t i = 0; i < 200; i++)
        ck_assert(ledger_corrupt(ledger, i, &unit) && unit == i);
    ck_assert(!ledger_corrupt(ledger, 200, &unit));
    ck_assert(ledger_found(ledger, 5, digest) && digest[0] == 1);
    ck_assert_int_eq(ledger_state(ledger, 5), UNIT_CORRUPT);
    ck_assert_ptr_null(ledger_blocks(ledger, 5));
    ledger_free(ledger);
}
END_TEST

/* ---- the cache --------------------------------------------------------------------------------------- */

enum { SLOT = 1000, TRIAL = 128 };

static void put_as(struct cache *cache, uint64_t key, bool spent) {
    struct cache_block *block = cache_take(cache, key, SLOT);
    memset(block->bytes, (int)key, SLOT);
    cache_put(cache, block, spent);
    cache_release(cache, block);
}

static void put(struct cache *cache, uint64_t key) {
    put_as(cache, key, false);
}

static bool has_as(struct cache *cache, uint64_t key, bool spent) {
    struct cache_block *block = cache_get(cache, key, spent);
    bool there = block != NULL;
    if (there) {
        ck_assert(block->key == key && block->len == SLOT && block->bytes[SLOT - 1] == (uint8_t)key);
        cache_release(cache, block);
    }
    return there;
}

static bool has(struct cache *cache, uint64_t key) {
    return has_as(cache, key, false);
}

START_TEST(the_cache_keeps_what_was_used_last) {
    struct cache *cache;
    ck_assert_int_eq(cache_new(SLOT, 10, &cache, NULL), 0);
    for (uint64_t key = 0; key < 10; key++)
        put(cache, key);
    for (uint64_t key = 0; key < 10; key++)
        ck_assert(has(cache, key));
    ck_assert(has(cache, 0));
    put(cache, 10); /* in the place of 1, the least recently used */
    ck_assert(has(cache, 0) && has(cache, 10) && !has(cache, 1) && has(cache, 2));
    struct cache_block *held = cache_get(cache, 3, false);
    for (uint64_t key = 100; key < 200; key++) {
        put(cache, key);
        ck_assert(has(cache, key));
    }
    ck_assert(has(cache, 3) && held->bytes[7] == 3); /* what is in hand is not overwritten */
    cache_release(cache, held);
    put(cache, 199); /* there already */
    ck_assert(has(cache, 199));
    cache_free(cache);
}
END_TEST

START_TEST(the_cache_uses_memory_again_before_it_takes_more) {
    struct cache *cache;
    struct cache_block *block;
    ck_assert_int_eq(cache_new(SLOT, 10 * TRIAL, &cache, NULL), 0);
    put_as(cache, 1, true);
    block = cache_take(cache, 2, SLOT);
    ck_assert(!has(cache, 1)); /* it was spent: its memory is taken first */
    cache_release(cache, block);
    for (uint64_t key = 1000; key < 2000; key++)
        put(cache, key);
    ck_assert(!has_as(cache, 1999 - TRIAL, true) && has_as(cache, 2000 - TRIAL, true));
    for (uint64_t key = 3000; key < 3500; key++) { /* asked for again: these spread */
        put(cache, key);
        ck_assert(has(cache, key));
    }
    ck_assert(has(cache, 3000));
    cache_free(cache);
}
END_TEST

START_TEST(more_blocks_in_hand_than_the_cache_has_are_loose) {
    struct cache *cache;
    struct cache_block *blocks[4];
    ck_assert_int_eq(cache_new(SLOT, 2, &cache, NULL), 0);
    for (uint64_t key = 0; key < 4; key++) {
        blocks[key] = cache_take(cache, key, SLOT);
        memset(blocks[key]->bytes, (int)key, SLOT);
        cache_put(cache, blocks[key], false);
    }
    for (uint64_t key = 0; key < 4; key++)
        cache_release(cache, blocks[key]);
    ck_assert(has(cache, 0) && has(cache, 1) && !has(cache, 2) && !has(cache, 3));
    blocks[0] = cache_take(cache, 7, 20 * SLOT); /* larger than a block: not kept, nothing else is dropped */
    memset(blocks[0]->bytes, 7, 20 * SLOT);
    cache_put(cache, blocks[0], false);
    cache_release(cache, blocks[0]);
    ck_assert(!has(cache, 7) && has(cache, 0) && has(cache, 1));
    cache_free(cache);
}
END_TEST

/* ---- the crew ---------------------------------------------------------------------------------------- */

struct work {
    atomic_uint left, calls, ticks;
};

static void work_some(void *arg) {
    struct work *work = arg;
    work->calls++;
    for (unsigned left = work->left; left;)
        if (atomic_compare_exchange_weak(&work->left, &left, left - 1))
            left = work->left;
}

static void work_tick(void *arg) {
    ((struct work *)arg)->ticks++;
}

START_TEST(a_crew_shares_work) {
    struct crew *crew;
    ck_assert_int_eq(crew_new(3, &crew, NULL), 0);
    for (int i = 0; i < 200; i++) {
        struct work work = {.left = 1000};
        crew_share(crew, 8, work_some, i % 2 ? work_tick : NULL, &work);
        ck_assert_uint_eq(work.left, 0);
        ck_assert_uint_ge(work.calls, 1);
    }
    crew_free(crew);
    crew_free(NULL);
}
END_TEST

/* ---- the witness ------------------------------------------------------------------------------------- */

START_TEST(a_witness_recalls_what_was_read) {
    struct faulty *faulty = faulty_new(10000);
    struct witness *witness;
    struct testimony one;
    uint8_t buf[10000];
    ck_assert_int_eq(witness_new(&faulty->source, &witness, NULL), 0);
    struct source *source = witness_source(witness);
    ck_assert_uint_eq(source->size, 10000);
    ck_assert_int_eq(source_read(source, 5000, buf, 100, NULL), 0);
    ck_assert_int_eq(source_read(source, 0, buf, 4096, NULL), 0);
    ck_assert_int_eq(source_read(source, 50, buf, 10, NULL), 0);
    ck_assert_int_eq(source_read(source, 50, buf, 10, NULL), 0); /* the same bytes: one testimony */
    faulty->bytes[55] ^= 1;
    ck_assert_int_eq(source_read(source, 50, buf, 10, NULL), 0);               /* other bytes: another one */
    ck_assert_int_eq(source_read(source, 9999, buf, 2, NULL), CKPT_E_CHANGED); /* what came is recorded */
    witness_seal(witness);
    ck_assert_int_eq(source_read(source, 6000, buf, 10, NULL), 0);
    ck_assert(!witness_recall(witness, (struct range){6000, 10}, 0, &one));
    ck_assert(!witness_recall(witness, (struct range){60, 0}, 0, &one));
    ck_assert(
        witness_recall(witness, (struct range){59, 1}, 0, &one) && one.at.off == 0 && one.at.len == 4096);
    ck_assert(witness_recall(witness, (struct range){59, 1}, 1, &one) && one.at.off == 50);
    uint64_t digest = one.digest;
    ck_assert(witness_recall(witness, (struct range){59, 1}, 2, &one) && one.digest != digest);
    uint64_t now = witness_digest(witness, faulty->bytes + 50, 10);
    ck_assert(now == digest || now == one.digest);
    ck_assert(!witness_recall(witness, (struct range){59, 1}, 3, &one));
    ck_assert(!witness_recall(witness, (struct range){60, 1}, 1, &one));
    ck_assert(
        witness_recall(witness, (struct range){4096, UINT64_MAX - 4096}, 0, &one) && one.at.off == 5000);
    ck_assert(witness_recall(witness, (struct range){9999, 1}, 0, &one) && one.at.len == 1);
    ck_assert(!witness_recall(witness, (struct range){4096, 904}, 0, &one));
    faulty->mtime = 3;
    ck_assert_int_eq(source_unchanged(source, NULL), CKPT_E_CHANGED);
    ck_assert_int_eq(source_sibling(source, "x", &source, NULL), CKPT_E_NOENT);
    source_close(source);
    witness_free(witness);
    witness_free(NULL);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("verify");
    TCase *tcase = tcase_create("verify");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, spans_hold_small_neighbours_only);
    tcase_add_test(tcase, spans_of_chunks_are_arithmetic);
    tcase_add_test(tcase, feeds_give_every_byte_in_order);
    tcase_add_test(tcase, feeds_give_what_was_read_before_a_fault);
    tcase_add_test(tcase, passes_give_every_block_once);
    tcase_add_test(tcase, mismatches_say_what_the_reference_says);
    tcase_add_test(tcase, a_pass_goes_on_where_it_stopped);
    tcase_add_loop_test(tcase, tables_name_their_first_bad_unit, 0, 3);
    tcase_add_test(tcase, the_ledger_lists_corrupt_units_in_order);
    tcase_add_test(tcase, the_cache_keeps_what_was_used_last);
    tcase_add_test(tcase, the_cache_uses_memory_again_before_it_takes_more);
    tcase_add_test(tcase, more_blocks_in_hand_than_the_cache_has_are_loose);
    tcase_add_test(tcase, a_crew_shares_work);
    tcase_add_test(tcase, a_witness_recalls_what_was_read);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
