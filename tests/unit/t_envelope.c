/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"
#include "judges.h"

#include "format/envelope.h"
#include "format/envelope_layout.h"

static struct bench load(const char *name, bool strict) {
    struct bench bench = {.strict = strict};
    bench.bytes = golden_load(name, &bench.len);
    return bench;
}

static void unload(struct bench *bench) {
    free((void *)(uintptr_t)bench->bytes);
}

static uint8_t *writable(struct bench *bench) {
    return (uint8_t *)(uintptr_t)bench->bytes;
}

static const struct blob *blob_of(const struct catalog *catalog, const char *path) {
    for (uint32_t i = 0; i < catalog->blob_count; i++)
        if (!strcmp(catalog->blobs[i].path, path))
            return &catalog->blobs[i];
    return NULL;
}

/* ---- contracts -------------------------------------------------------------------------------------- */

static void load_contract(const char *name, struct contract *contract) {
    struct ckpt_err err;
    size_t len;
    uint8_t *text = golden_load(name, &len);
    ck_assert_msg(contract_parse((char *)text, len, contract, &err) == 0, "%s: %s", name, err.msg);
    free(text);
    for (int i = 0; i < 4; i++)
        SHA256((uint8_t *)contract->identity[i], contract->identity_len[i], contract->identity_sha256[i]);
}

START_TEST(a_contract_is_read_exactly) {
    static const char text[] =
        "{\"schema\": \"\\u00e9\\u0000x\", \"more\": {\"schema\": [1, {}]}, \"learner\": \"\","
        "\"data\": \"d\", \"seed\": \"s\", \"payload_bytes\": 18446744073709551615,"
        "\"chunk_bytes\": 9007199254740993, \"updates_per_invocation\": 0}";
    struct contract contract;
    struct ckpt_err err;
    ck_assert_msg(contract_parse(text, sizeof text - 1, &contract, &err) == 0, "%s", err.msg);
    ck_assert_uint_eq(contract.identity_len[0], 4);
    ck_assert(!memcmp(contract.identity[0], "\xc3\xa9\0x", 5));
    ck_assert_uint_eq(contract.identity_len[1], 0);
    ck_assert_str_eq(contract.identity[3], "s");
    ck_assert_uint_eq(contract.payload_bytes, UINT64_MAX);
    ck_assert_uint_eq(contract.chunk_bytes, UINT64_C(9007199254740993));
    ck_assert_uint_eq(contract.updates_per_invocation, 0);
    contract_free(&contract);
}
END_TEST

#define IDENTITIES "\"schema\":\"\",\"learner\":\"\",\"data\":\"\",\"seed\":\"\","

/* Each with what its message has to say. */
static const struct {
    const char *text, *says;
} bad_contracts[] = {
    {"", "malformed"},
    {"[]", "object"},
    {"7", "object"},
    {"{", "malformed"},
    {"{\"schema\":}", "malformed"},
    {"{\"x\":[}", "malformed"},
    {"{} {}", "malformed"},
    {"{}", "schema is missing"},
    {"{\"schema\":\"\",\"learner\":\"\",\"data\":\"\"}", "seed is missing"},
    {"{" IDENTITIES "\"payload_bytes\":1,\"chunk_bytes\":1}", "updates_per_invocation is missing"},
    {"{\"schema\":7}", "schema is no text"},
    {"{\"schema\":null}", "schema is no text"},
    {"{\"schema\":{}}", "schema is no text"},
    {"{\"schema\":\"\",\"schema\":\"\"}", "schema is there twice"},
    {"{\"payload_bytes\":\"1\"}", "payload_bytes is no number"},
    {"{\"payload_bytes\":1.0}", "payload_bytes is 1.0"},
    {"{\"payload_bytes\":1e3}", "payload_bytes is 1e3"},
    {"{\"chunk_bytes\":18446744073709551616}", "chunk_bytes is 18446744073709551616"},
    {"{\"updates_per_invocation\":-1}", "updates_per_invocation is -1"},
    {"{" IDENTITIES "\"payload_bytes\":1,\"chunk_bytes\":0,\"updates_per_invocation\":1}",
        "chunk_bytes is 0"},
};
#define BAD_CONTRACTS (int)(sizeof bad_contracts / sizeof *bad_contracts)

START_TEST(a_malformed_contract_is_refused_and_says_why) {
    struct contract contract = {.payload_bytes = 7};
    struct ckpt_err err;
    const char *text = bad_contracts[_i].text;
    ck_assert_int_eq(contract_parse(text, strlen(text), &contract, &err), CKPT_E_INVAL);
    ck_assert_msg(strstr(err.msg, bad_contracts[_i].says) != NULL, "%s: %s", text, err.msg);
    ck_assert_uint_eq(contract.payload_bytes, 7);
    ck_assert_int_eq(contract_parse(text, strlen(text), &contract, NULL), CKPT_E_INVAL);
}
END_TEST

START_TEST(a_contract_may_give_an_empty_payload_without_chunks) {
    static const char text[] =
        "{" IDENTITIES "\"payload_bytes\":0,\"chunk_bytes\":0,\"updates_per_invocation\":1}";
    struct contract contract;
    ck_assert_int_eq(contract_parse(text, sizeof text - 1, &contract, NULL), 0);
    contract_free(&contract);
}
END_TEST

START_TEST(no_file_is_as_large_as_some_contracts_say) {
    static const uint64_t chunks[] = {1, UINT64_MAX, UINT64_C(1) << 40};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct contract contract = {.payload_bytes = UINT64_MAX, .chunk_bytes = chunks[i]};
        struct source *source;
        struct ckpt_err err;
        ck_assert_int_eq(source_from_mem("memory", "", 0, &source, NULL), 0);
        ck_assert_int_eq(envelope_judge(source, &contract, &err), CKPT_E_MISMATCH);
        ck_assert_str_eq(err.words, "truncated");
        source_close(source);
    }
}
END_TEST

/* ---- verdicts --------------------------------------------------------------------------------------- */

static void words_of(struct slice item, char *out, size_t cap) {
    static const struct {
        const char *error, *words;
    } table[] = {
        {"Truncated", "truncated"},
        {"Layout", "layout"},
        {"ForeignSchema", "foreign-schema"},
        {"ForeignLearner", "foreign-learner"},
        {"ForeignData", "foreign-data"},
        {"ForeignSeed", "foreign-seed"},
    };
    char error[40];
    golden_text(golden_member(item, "error"), error, sizeof error);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].error, error)) {
            snprintf(out, cap, "%s", table[i].words);
            return;
        }
    ck_assert_str_eq(error, "ChunkMismatch");
    snprintf(out, cap, "chunk-mismatch %" PRIu64, slice_u64(golden_member(item, "chunk")));
}

/* Steps 1 to 6, then the chunks, with the words of the first fault; 0: accepted. */
static int judge(struct bench *bench, const char *contract_name, struct ckpt_err *err) {
    struct contract contract = {0};
    struct source *source;
    struct catalog catalog = {0};
    load_contract(contract_name, &contract);
    ck_assert_int_eq(source_from_mem("memory", bench->bytes, bench->len, &source, NULL), 0);
    int rc = envelope_judge(source, &contract, err);
    if (bench->len >= 200 &&
        (!err || strcmp(err->words, "truncated") != 0)) { /* the parsed header, judged alike */
        struct ckpt_err again = {0};
        ck_assert_int_eq(envelope_judge_header(bench->bytes, &contract, &again), rc);
        ck_assert_str_eq(again.words, rc ? err->words : "");
    }
    source_close(source);
    contract_free(&contract);
    if (!rc)
        rc = bench_parse(bench, &format_envelope, 0, &catalog, err);
    catalog_free(&catalog);
    return rc;
}

static void verdict(struct slice item, size_t index, void *arg) {
    (void)index;
    char name[128], contract[128], words[64] = "";
    struct ckpt_err err = {0};
    golden_text(golden_member(item, "file"), name, sizeof name);
    golden_text(golden_member(item, "contract"), contract, sizeof contract);
    struct bench bench = load(name, true);
    bool valid = slice_is(golden_member(item, "valid"), "true");
    if (!valid)
        words_of(item, words, sizeof words);
    int rc = judge(&bench, contract, &err);
    ck_assert_msg(rc == (valid ? 0 : CKPT_E_MISMATCH), "%s: %d %s", name, rc, err.msg);
    ck_assert_msg(!strcmp(err.words, words), "%s: \"%s\", not \"%s\" (%s)", name, err.words, words, err.msg);
    ck_assert_msg(valid || strlen(err.msg) > strlen(words) + 2, "%s: no detail in %s", name, err.msg);
    unload(&bench);
    ++*(unsigned *)arg;
}

START_TEST(verdicts_come_in_the_order_of_the_contract) {
    unsigned seen = 0;
    golden_cases("envelope", verdict, &seen);
    ck_assert_uint_gt(seen, 60);
}
END_TEST

/* ---- accepted files --------------------------------------------------------------------------------- */

static void expect_number(struct slice want, const char *key, uint64_t got) {
    uint64_t number = slice_u64(golden_member(want, key));
    ck_assert_msg(number == got, "%s: %" PRIu64 ", not %" PRIu64, key, got, number);
}

static void expect_hex(struct slice want, const char *key, const uint8_t *got, size_t len) {
    char text[80];
    golden_text(golden_member(want, key), text, sizeof text);
    for (size_t i = 0; i < len; i++) {
        char pair[3];
        snprintf(pair, sizeof pair, "%02x", got[i]);
        ck_assert_msg(!memcmp(pair, text + 2 * i, 2), "%s differs", key);
    }
}

static void expect_envelope(const struct bench *bench, const struct catalog *catalog, struct slice want) {
    static const char *const identities[] = {"schema", "learner", "data", "seed"};
    static const uint8_t zeros[32];
    const struct envelope *envelope = catalog->envelope;
    expect_number(want, "header_bytes", envelope->header_bytes);
    expect_number(want, "payload_bytes", envelope->payload_bytes);
    expect_number(want, "chunk_bytes", envelope->chunk_bytes);
    expect_number(want, "full_chunks", envelope->full_chunks);
    expect_number(want, "tail_bytes", envelope->tail_bytes);
    expect_number(want, "chunk_count", envelope->chunk_count);
    expect_number(want, "updates", envelope->updates);
    expect_number(want, "invocations", envelope->invocations);
    expect_number(want, "file_bytes", catalog->source_bytes);
    ck_assert_uint_eq(envelope->version, 1);
    for (int i = 0; i < 4; i++)
        expect_hex(golden_member(want, "identity_sha256"), identities[i], envelope->identity[i], 32);
    uint8_t digest[32];
    SHA256(envelope->header, envelope->header_bytes, digest);
    expect_hex(want, "header_sha256", digest, sizeof digest);
    ck_assert(!memcmp(envelope->manifest, zeros, sizeof zeros));
    SHA256(bench->bytes + catalog->units.base, catalog->units.total, digest);
    expect_hex(want, "payload_sha256", digest, sizeof digest);
}

static void expect_chunks(const struct bench *bench, const struct catalog *catalog) {
    const struct unit_table *units = &catalog->units;
    uint64_t at = catalog->envelope->header_bytes;
    ck_assert_uint_eq(units->count, catalog->envelope->chunk_count);
    for (uint64_t i = 0; i < units->count; i++) {
        const struct unit unit = unit_get(units, i);
        ck_assert(unit.at.off == at && unit.index == i && unit.kind == DIGEST_SHA256);
        ck_assert(unit_holds(bench, &unit));
        at += unit.at.len;
    }
    ck_assert_uint_eq(at, bench->len);
}

static void accepted(struct slice item, size_t index, void *arg) {
    (void)index;
    char name[128];
    if (slice_is(golden_member(item, "valid"), "false"))
        return;
    golden_text(golden_member(item, "file"), name, sizeof name);
    struct bench bench = load(name, true);
    struct catalog catalog;
    struct ckpt_err err = {0};
    int rc = bench_parse(&bench, &format_envelope, 0, &catalog, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err.msg);
    ck_assert_uint_eq(bench.tables, 1);
    expect_envelope(&bench, &catalog, golden_member(item, "expect"));
    expect_chunks(&bench, &catalog);
    ck_assert_ptr_null(catalog.lost);
    const char *format = strstr(name, "holds_oam")           ? "oam"
                         : strstr(name, "holds_safetensors") ? "safetensors"
                                                             : "raw";
    ck_assert_str_eq(catalog.format, format);
    ck_assert((catalog.envelope->stray != 0) == (strstr(name, "padding_not_zero") != NULL));
    catalog_free(&catalog);
    unload(&bench);
    ++*(unsigned *)arg;
}

START_TEST(accepted_files_are_read_as_they_are) {
    unsigned seen = 0;
    golden_cases("envelope", accepted, &seen);
    ck_assert_uint_gt(seen, 20);
}
END_TEST

START_TEST(a_stray_byte_is_found_where_it_is) {
    struct bench bench = load("envelope/accepted/padding_not_zero.ckpt", false);
    struct catalog catalog;
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, NULL), 0);
    const struct envelope *envelope = catalog.envelope;
    ck_assert_uint_ge(envelope->stray, 200 + 32 * envelope->chunk_count);
    ck_assert_uint_lt(envelope->stray, envelope->header_bytes);
    ck_assert_uint_ne(bench.bytes[envelope->stray], 0);
    uint64_t was = envelope->stray;
    writable(&bench)[was] = 0;
    catalog_free(&catalog);
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, NULL), 0);
    ck_assert_uint_eq(catalog.envelope->stray, 0);
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

/* ---- without a contract ----------------------------------------------------------------------------- */

#define PLAIN "envelope/accepted/whole_chunks_and_tail.ckpt"

/* One field changed in a good file: what does not hold any more. */
static const struct {
    uint64_t offset, value;
    const char *words;
} figures[] = {
    {0, 0, "layout"},                                                          /* the magic */
    {8, 2, "layout"},                                                          /* version */
    {16, 8192, "truncated"},                                                   /* header bytes */
    {16, 0, "truncated"}, {24, 0, "truncated"},                                /* payload bytes */
    {24, UINT64_MAX, "truncated"}, {32, 0, "layout"},                          /* chunk bytes */
    {32, 1, "layout"}, {32, UINT64_MAX, "layout"}, {40, UINT64_MAX, "layout"}, /* full chunks */
    {48, 0, "layout"},                                                         /* tail bytes */
};
#define FIGURES (int)(sizeof figures / sizeof *figures)

static void put_u64(uint8_t *out, uint64_t value) {
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static void expect_refusal(struct bench *bench, int code, const char *words) {
    struct catalog catalog;
    struct ckpt_err err = {0};
    int rc = bench_parse(bench, &format_envelope, 0, &catalog, &err);
    ck_assert_msg(rc == code && (!words || !strcmp(err.words, words)), "%d: %s", rc, err.msg);
    ck_assert_uint_eq(bench->tables, 0);
    catalog_free(&catalog);
}

START_TEST(figures_have_to_agree) {
    struct bench bench = load(PLAIN, false);
    put_u64(writable(&bench) + figures[_i].offset, figures[_i].value);
    expect_refusal(&bench, CKPT_E_MISMATCH, figures[_i].words);
    unload(&bench);
}
END_TEST

START_TEST(every_cut_is_truncated) {
    struct bench bench = load(PLAIN, false);
    while (bench.len-- > 0)
        expect_refusal(&bench, CKPT_E_MISMATCH, "truncated");
    unload(&bench);
}
END_TEST

/* A header moved to the payload's cost: the sum is right, the layout is not. */
START_TEST(a_header_of_other_pages_is_layout) {
    struct bench bench = load("envelope/accepted/big.ckpt", false);
    put_u64(writable(&bench) + 16, 8192);
    put_u64(writable(&bench) + 24, bench.len - 8192);
    expect_refusal(&bench, CKPT_E_MISMATCH, "layout");
    unload(&bench);
}
END_TEST

static int zeros_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    static const struct envelope_layout layout = {1, (UINT64_C(1) << 31) + 4096, 1 << 26, 1, 1 << 26, 0};
    const uint64_t fields[] = {layout.version, layout.header_bytes, layout.payload_bytes, layout.chunk_bytes,
        layout.full_chunks, layout.tail_bytes};
    (void)source, (void)err;
    memset(buf, 0, len);
    ck_assert(off == 0 && len <= 4096); /* nothing else may be read */
    memcpy(buf, ENVELOPE_MAGIC, 8);
    for (size_t i = 0; i < 6; i++)
        put_u64((uint8_t *)buf + 8 + 8 * i, fields[i]);
    *ret_len = len;
    return 0;
}

START_TEST(a_header_over_a_gigabyte_is_not_read) {
    static const struct source_ops ops = {.pread = zeros_pread};
    static char name[] = "zeros";
    struct source zeros = {.ops = &ops, .name = name, .size = (UINT64_C(1) << 31) + 4096 + (1 << 26)};
    struct source *source = &zeros;
    struct bench bench = {0};
    const struct unit_judge blind = {.unit = bench_unit, .table = bench_table, .arg = &bench};
    struct catalog catalog = {0};
    ck_assert_int_eq(format_envelope.parse(&source, 0, &blind, &catalog, NULL), CKPT_E_LIMIT);
    catalog_free(&catalog);
}
END_TEST

START_TEST(probing_looks_at_the_magic) {
    ck_assert(format_envelope.probe((const uint8_t *)"ALPHACKP", 8, 8));
    ck_assert(!format_envelope.probe((const uint8_t *)"ALPHACKP", 7, 7));
    ck_assert(!format_envelope.probe((const uint8_t *)"alphaCKP", 8, 8));
    ck_assert_ptr_null(format_envelope.suffix);
}
END_TEST

/* ---- payloads --------------------------------------------------------------------------------------- */

#define HOLDS_OAM "envelope/accepted/holds_oam.ckpt"
#define HOLDS_SAFETENSORS "envelope/accepted/holds_safetensors.ckpt"

START_TEST(an_oam_inside_keeps_its_sections_beside_the_chunks) {
    struct bench bench = load(HOLDS_OAM, false);
    struct catalog catalog;
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, NULL), 0);
    ck_assert_str_eq(catalog.format, "oam");
    ck_assert_uint_eq(catalog.parts[0].base, 4096);
    ck_assert_uint_eq(catalog.inner.count, catalog.section_count);
    ck_assert_uint_gt(catalog.section_count, 0);
    for (uint64_t i = 0; i < catalog.inner.count; i++) {
        const struct unit unit = unit_get(&catalog.inner, i);
        ck_assert_uint_eq(unit.at.off, 4096 + catalog.sections[i].offset);
        ck_assert(unit_holds(&bench, &unit));
    }
    ck_assert_ptr_nonnull(blob_of(&catalog, "sections/config.bin"));
    /* the tree makes the envelope's own files of what catalog.envelope says */
    ck_assert_ptr_null(blob_of(&catalog, "envelope/header.bin"));
    ck_assert_ptr_null(blob_of(&catalog, "envelope/payload.bin"));
    ck_assert_uint_eq(bench.blamed, 0);
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

/* The offset in the file of the section's first byte. */
static uint64_t section_start(struct bench *bench, const char *kind) {
    struct catalog catalog;
    uint64_t at = 0;
    ck_assert_int_eq(bench_parse(bench, &format_envelope, 0, &catalog, NULL), 0);
    for (uint32_t i = 0; i < catalog.section_count; i++)
        if (!strcmp(catalog.sections[i].kind, kind))
            at = 4096 + catalog.sections[i].offset;
    ck_assert_uint_gt(at, 0);
    catalog_free(&catalog);
    bench->blamed = bench->in_order = 0;
    return at;
}

START_TEST(a_damaged_section_inside_is_its_chunks_fault) {
    struct bench bench = load(HOLDS_OAM, false);
    struct catalog catalog;
    struct ckpt_err err = {0};
    writable(&bench)[section_start(&bench, "weights") + 7] = 0xff;
    ck_assert_msg(bench_parse(&bench, &format_envelope, 0, &catalog, &err) == 0, "%s", err.msg);
    ck_assert_str_eq(catalog.format, "oam");
    ck_assert(catalog.groups[GROUP_TENSORS].damaged);
    ck_assert_uint_gt(bench.blamed, 0);
    ck_assert_ptr_null(catalog.lost);
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

/* The chunk digests are made right again: someone sealed it so. */
static void seal(struct bench *bench) {
    struct catalog catalog;
    ck_assert_int_eq(bench_parse(bench, &format_envelope, 0, &catalog, NULL), 0);
    for (uint64_t i = 0; i < catalog.units.count; i++) {
        const struct unit unit = unit_get(&catalog.units, i);
        SHA256(bench->bytes + unit.at.off, unit.at.len, writable(bench) + 200 + 32 * i);
    }
    catalog_free(&catalog);
    bench->blamed = bench->in_order = bench->tables = 0;
}

START_TEST(a_malformed_section_that_was_sealed_is_refused) {
    struct bench bench = load(HOLDS_OAM, false);
    struct catalog catalog;
    struct ckpt_err err = {0};
    writable(&bench)[section_start(&bench, "weights") + 7] = 0xff;
    seal(&bench);
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, &err), CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "tensor index reserved field is nonzero");
    ck_assert_msg(!strncmp(err.msg, "payload: ", 9), "%s", err.msg);
    catalog_free(&catalog);
    bench.strict = true; /* the chunks hold, the section does not */
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, &err), CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "section payload checksum mismatch");
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

static void expect_raw(const struct catalog *catalog, const struct bench *bench) {
    ck_assert_str_eq(catalog->format, "raw");
    ck_assert(
        !catalog->section_count && !catalog->document_count && !catalog->part_count && !catalog->version);
    ck_assert(!catalog->exports && !catalog->has_optimizer && !catalog->inner.count && !catalog->head.len);
    for (int kind = 0; kind < GROUP_COUNT; kind++)
        ck_assert(!catalog->groups[kind].present);
    ck_assert_uint_eq(catalog->blob_count, 0);
    ck_assert_uint_eq(catalog->source_bytes, bench->len);
    ck_assert_uint_eq(catalog->units.count, catalog->envelope->chunk_count);
}

/* A byte of what everything else is found by, after the magic. */
static const struct {
    const char *file;
    uint64_t at;
    uint8_t value;
} foundations[] = {
    {HOLDS_OAM, 4096 + 5, 0xff},         /* version: before the table's size is known */
    {HOLDS_OAM, 4096 + 64 + 12, 0xff},   /* a section's offset: the metadata checksum does not hold */
    {HOLDS_SAFETENSORS, 4096 + 9, 0xff}, /* in the JSON */
};
#define FOUNDATIONS (int)(sizeof foundations / sizeof *foundations)

START_TEST(a_payload_whose_index_is_damaged_is_shown_raw) {
    struct bench bench = load(foundations[_i].file, false);
    struct catalog catalog;
    struct ckpt_err err = {0};
    writable(&bench)[foundations[_i].at] = foundations[_i].value;
    ck_assert_msg(bench_parse(&bench, &format_envelope, 0, &catalog, &err) == 0, "%s", err.msg);
    expect_raw(&catalog, &bench);
    ck_assert_ptr_nonnull(catalog.lost);
    ck_assert_msg(strstr(catalog.lost, "chunk-mismatch 0") != NULL, "%s", catalog.lost);
    catalog_free(&catalog);

    bench.sick = CKPT_E_INTR; /* nobody knows whose fault it is */
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, &err), CKPT_E_INTR);
    catalog_free(&catalog);
    bench.sick = 0;

    bench.strict = true; /* the chunks come first */
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, &err), CKPT_E_MISMATCH);
    ck_assert_str_eq(err.words, "chunk-mismatch 0");
    catalog_free(&catalog);
    bench.strict = false;

    seal(&bench);
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, &err), CKPT_E_CORRUPT);
    ck_assert_msg(!strncmp(err.msg, "payload: ", 9), "%s", err.msg);
    catalog_free(&catalog);
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, NULL), CKPT_E_CORRUPT);
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

/* An envelope around a file of the golden ones; free its bytes. */
static struct bench wrap(const char *name, uint64_t chunk) {
    struct bench bench = {0};
    size_t len;
    uint8_t *payload = golden_load(name, &len);
    uint8_t *bytes = calloc(1, 4096 + len);
    const uint64_t fields[] = {1, 4096, len, chunk, len / chunk, len % chunk};
    memcpy(bytes, ENVELOPE_MAGIC, 8);
    for (size_t i = 0; i < 6; i++)
        put_u64(bytes + 8 + 8 * i, fields[i]);
    memcpy(bytes + 4096, payload, len);
    free(payload);
    bench.bytes = bytes;
    bench.len = 4096 + len;
    seal(&bench);
    return bench;
}

/* The header and table of the .oam fill the first chunk exactly: the second one has no part in their fault.
 */
START_TEST(the_next_chunk_is_not_blamed) {
    struct bench bench = wrap("oam/valid/minimal_defaults.oam", 64 + 2 * 64);
    struct catalog catalog;
    struct ckpt_err err = {0};
    uint8_t *bytes = writable(&bench);
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, NULL), 0);
    ck_assert_uint_eq(catalog.head.len, catalog.envelope->chunk_bytes);
    catalog_free(&catalog);
    bytes[4096 + 24] ^= 1; /* the metadata checksum, sealed so */
    SHA256(bytes + 4096, 64 + 2 * 64, bytes + 200);
    bytes[4096 + 64 + 2 * 64] ^= 1;
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, &err), CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "file metadata checksum mismatch");
    catalog_free(&catalog);
    bytes[4096 + 64 + 2 * 64 - 1] ^= 1; /* its last byte is the first chunk's */
    ck_assert_int_eq(bench_parse(&bench, &format_envelope, 0, &catalog, &err), 0);
    expect_raw(&catalog, &bench);
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

/* ---- any bytes -------------------------------------------------------------------------------------- */

static const char *const mutated[] = {HOLDS_OAM, HOLDS_SAFETENSORS, PLAIN,
    "envelope/accepted/empty_payload.ckpt", "envelope/accepted/holds_envelope.ckpt"};

START_TEST(no_changed_byte_does_harm) {
    struct bench bench = load(mutated[_i], false);
    uint8_t *bytes = writable(&bench);
    for (size_t at = 0; at < bench.len; at++)
        for (int blind = 0; blind < 2; blind++) {
            struct catalog catalog;
            struct ckpt_err err = {0};
            bench.blind = blind;
            bytes[at] ^= 0xff;
            int rc = bench_parse(&bench, &format_envelope, 0, &catalog, &err);
            ck_assert_msg(rc == 0 || rc == CKPT_E_MISMATCH || rc == CKPT_E_CORRUPT || rc == CKPT_E_LIMIT,
                "%d: %s", rc, err.msg);
            catalog_free(&catalog);
            bytes[at] ^= 0xff;
        }
    unload(&bench);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("envelope");
    TCase *tcase = tcase_create("envelope");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_contract_is_read_exactly);
    tcase_add_loop_test(tcase, a_malformed_contract_is_refused_and_says_why, 0, BAD_CONTRACTS);
    tcase_add_test(tcase, a_contract_may_give_an_empty_payload_without_chunks);
    tcase_add_test(tcase, no_file_is_as_large_as_some_contracts_say);
    tcase_add_test(tcase, verdicts_come_in_the_order_of_the_contract);
    tcase_add_test(tcase, accepted_files_are_read_as_they_are);
    tcase_add_test(tcase, a_stray_byte_is_found_where_it_is);
    tcase_add_loop_test(tcase, figures_have_to_agree, 0, FIGURES);
    tcase_add_test(tcase, every_cut_is_truncated);
    tcase_add_test(tcase, a_header_of_other_pages_is_layout);
    tcase_add_test(tcase, a_header_over_a_gigabyte_is_not_read);
    tcase_add_test(tcase, probing_looks_at_the_magic);
    tcase_add_test(tcase, an_oam_inside_keeps_its_sections_beside_the_chunks);
    tcase_add_test(tcase, a_damaged_section_inside_is_its_chunks_fault);
    tcase_add_test(tcase, a_malformed_section_that_was_sealed_is_refused);
    tcase_add_loop_test(tcase, a_payload_whose_index_is_damaged_is_shown_raw, 0, FOUNDATIONS);
    tcase_add_test(tcase, the_next_chunk_is_not_blamed);
    tcase_add_loop_test(tcase, no_changed_byte_does_harm, 0, 5);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
