/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"
#include "judges.h"

#include "base/text.h"
#include "format/oam_layout.h"

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

static const struct document *document_of(const struct catalog *catalog, const char *path) {
    for (uint32_t i = 0; i < catalog->document_count; i++)
        if (!strcmp(catalog->documents[i].path, path))
            return &catalog->documents[i];
    return NULL;
}

static const struct blob *blob_of(const struct catalog *catalog, const char *path) {
    for (uint32_t i = 0; i < catalog->blob_count; i++)
        if (!strcmp(catalog->blobs[i].path, path))
            return &catalog->blobs[i];
    return NULL;
}

static struct slice json_of(const struct catalog *catalog, const char *path) {
    const struct document *document = document_of(catalog, path);
    ck_assert_ptr_nonnull(document);
    ck_assert_ptr_nonnull(document->json);
    ck_assert_msg(json_python(document->json, document->json_len), "%s", document->json);
    ck_assert_uint_eq(strlen(document->json), document->json_len);
    return (struct slice){document->json, document->json_len};
}

/* ---- broken files ----------------------------------------------------------------------------------- */

static void expect_words(struct slice item, bool strict) {
    char name[128], words[200];
    struct ckpt_err err = {0};
    struct catalog catalog;
    golden_text(golden_member(item, "file"), name, sizeof name);
    golden_text(golden_member(item, "error"), words, sizeof words);
    struct bench bench = load(name, strict);
    if (strict || strcmp(words, "section payload checksum mismatch") != 0) {
        int rc = bench_parse(&bench, &format_oam, 0, &catalog, &err);
        ck_assert_msg(rc == CKPT_E_CORRUPT && err.code == rc, "%s: %d %s", name, rc, err.msg);
        ck_assert_msg(
            !strcmp(err.words, words), "%s: \"%s\", not \"%s\" (%s)", name, err.words, words, err.msg);
        ck_assert_msg(strlen(err.msg) > strlen(words) + 2, "%s: no detail in %s", name, err.msg);
        catalog_free(&catalog);
    }
    unload(&bench);
}

static void broken_strictly(struct slice item, size_t index, void *arg) {
    (void)index;
    if (slice_is(golden_member(item, "valid"), "true"))
        return;
    expect_words(item, true);
    ++*(unsigned *)arg;
}

START_TEST(broken_files_get_the_words_of_the_reference) {
    unsigned seen = 0;
    golden_cases("oam", broken_strictly, &seen);
    ck_assert_uint_gt(seen, 180);
}
END_TEST

/* Their digests hold, so that nobody can blame the disk: the fault is the same. */
static void broken_lazily(struct slice item, size_t index, void *arg) {
    (void)index, (void)arg;
    if (slice_is(golden_member(item, "valid"), "false"))
        expect_words(item, false);
}

START_TEST(malformed_files_with_right_digests_are_refused_lazily_too) {
    golden_cases("oam", broken_lazily, NULL);
}
END_TEST

/* ---- valid files ------------------------------------------------------------------------------------ */

static void expect_text(struct slice got, struct slice want, const char *what) {
    char a[512], b[512];
    size_t len = golden_text(got, a, sizeof a);
    ck_assert_msg(len == golden_text(want, b, sizeof b) && !memcmp(a, b, len), "%s: %s, not %s", what, a, b);
}

/* Numbers, booleans: the same text. */
static void expect_same(struct slice got, struct slice want, const char *what) {
    ck_assert_msg(got.len == want.len && !memcmp(got.at, want.at, got.len), "%s: %.*s, not %.*s", what,
        (int)got.len, got.at, (int)want.len, want.at);
}

static void expect_float(struct slice object, struct slice expect, const char *key) {
    char bits_key[40], hex[16], text[64];
    snprintf(bits_key, sizeof bits_key, "%s_bits", key);
    golden_text(golden_member(expect, bits_key), hex, sizeof hex);
    uint32_t bits = (uint32_t)strtoul(hex, NULL, 16);
    float want, got;
    memcpy(&want, &bits, sizeof want);
    struct slice value = golden_member(object, key);
    if (value.at[0] == '"') {
        golden_text(value, text, sizeof text);
        ck_assert_str_eq(text, want != want ? "NaN" : want > 0 ? "Infinity" : "-Infinity");
        return;
    }
    ck_assert_uint_lt(value.len, sizeof text);
    memcpy(text, value.at, value.len);
    text[value.len] = '\0';
    got = strtof(text, NULL);
    ck_assert_msg(!memcmp(&got, &want, sizeof got), "%s: %s, not %s", key, text, hex);
}

static void expect_config(const struct bench *bench, const struct catalog *catalog, struct slice want) {
    static const char *const numbers[] = {"config_version", "flags", "d_model", "n_layers", "d_vocab"};
    static const char *const texts[] = {"architecture", "weight_dtype", "state_dtype", "compute_dtype"};
    struct slice got = json_of(catalog, "config.json");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        expect_same(golden_member(got, numbers[i]), golden_member(want, numbers[i]), numbers[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_text(golden_member(got, texts[i]), golden_member(want, texts[i]), texts[i]);
    struct slice hex = golden_member(want, "arch_config_hex");
    size_t len = (hex.len - 2) / 2;
    const struct blob *blob = blob_of(catalog, "raw/arch_config.bin");
    struct slice arch = golden_member(got, "arch_config");
    ck_assert_uint_eq(slice_u64(golden_member(got, "arch_config_bytes")), len);
    ck_assert((blob != NULL) == (len > 0));
    if (!blob)
        return;
    ck_assert_uint_eq(blob->at.len, len);
    const uint8_t *stored = bench->bytes + blob->at.off;
    for (size_t i = 0; i < len; i++) {
        char pair[3];
        snprintf(pair, sizeof pair, "%02x", stored[i]);
        ck_assert(!memcmp(pair, hex.at + 1 + 2 * i, 2));
    }
    if (!slice_is(arch, "null"))
        expect_same(arch, (struct slice){(const char *)stored, len}, "arch_config");
}

static void expect_progress(const struct catalog *catalog, struct slice want) {
    static const char *const same[] = {"phase", "step", "bytes_seen", "env_steps", "lower_is_better"};
    struct slice got = json_of(catalog, "progress.json");
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        expect_same(golden_member(got, same[i]), golden_member(want, same[i]), same[i]);
    expect_float(got, want, "learning_rate");
    expect_float(got, want, "best_metric");
    expect_text(golden_member(got, "metric_name"), golden_member(want, "metric_name"), "metric_name");
}

static void expect_sha256(const struct bench *bench, const struct catalog *catalog,
    const struct tensor *tensor, struct slice want) {
    char hex[65], wanted[80];
    struct range at = tensor_range(catalog, tensor);
    ck_assert(at.off <= bench->len && at.len <= bench->len - at.off);
    sha256_hex(bench->bytes + at.off, at.len, hex);
    golden_text(golden_member(want, "sha256"), wanted, sizeof wanted);
    ck_assert_msg(!strcmp(hex, wanted), "%s: %s, not %s", tensor->name, hex, wanted);
}

static void expect_optimizer(const struct bench *bench, const struct catalog *catalog, struct slice want) {
    static const char *const floats[] = {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay"};
    static const char *const moments[] = {"first_moment", "second_moment"};
    const struct group *group = &catalog->groups[GROUP_OPTIMIZER];
    bool present = !slice_is(want, "null");
    ck_assert(catalog->has_optimizer == present && group->present == present);
    ck_assert((document_of(catalog, "optimizer/optimizer.json") != NULL) == present);
    if (!present)
        return;
    struct slice got = json_of(catalog, "optimizer/optimizer.json");
    ck_assert_uint_eq(document_of(catalog, "optimizer/optimizer.json")->from.len, 68);
    expect_text(golden_member(got, "kind"), golden_member(want, "kind"), "kind");
    expect_same(golden_member(got, "step"), golden_member(want, "step"), "step");
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        expect_float(got, want, floats[i]);
    uint64_t count = slice_u64(golden_member(golden_member(want, "first_moment"), "count"));
    bool muon = slice_is(golden_member(want, "kind"), "\"Muon\"");
    ck_assert_uint_eq(group->count, muon ? 1 : 2);
    ck_assert_uint_eq(golden_items(golden_member(got, "moments"), NULL, NULL), group->count);
    ck_assert_uint_eq(slice_u64(golden_member(got, "parameters")), count);
    for (uint64_t i = 0; i < group->count; i++) {
        const struct tensor *tensor = &group->items[i];
        struct slice moment = golden_member(want, moments[i]);
        ck_assert_str_eq(tensor->name, moments[i]);
        ck_assert_uint_eq(tensor->rank, 1);
        ck_assert_uint_eq(tensor->shape[0], slice_u64(golden_member(moment, "count")));
        ck_assert_uint_eq(tensor->elements, tensor->shape[0]);
        ck_assert_uint_eq(tensor->dtype, DTYPE_F32);
        expect_sha256(bench, catalog, tensor, moment);
    }
}

struct expected_group {
    const struct bench *bench;
    const struct catalog *catalog;
    const struct group *group;
};

static void expect_extent(struct slice item, size_t index, void *arg) {
    const struct tensor *tensor = arg;
    ck_assert_uint_lt(index, tensor->rank);
    ck_assert_uint_eq(tensor->shape[index], slice_u64(item));
}

static void expect_tensor(struct slice item, size_t index, void *arg) {
    struct expected_group *expected = arg;
    ck_assert_uint_lt(index, expected->group->count);
    struct tensor *tensor = &expected->group->items[index];
    char text[200];
    size_t len = golden_text(golden_member(item, "name"), text, sizeof text);
    ck_assert_msg(
        len == tensor->name_len && !memcmp(text, tensor->name, len + 1), "%s, not %s", tensor->name, text);
    golden_text(golden_member(item, "dtype"), text, sizeof text);
    ck_assert_str_eq(dtype_table[tensor->dtype].name, text);
    golden_text(golden_member(item, "encoding"), text, sizeof text);
    ck_assert_str_eq(encoding_names[tensor->encoding], text);
    ck_assert_uint_eq(tensor->block, slice_u64(golden_member(item, "block_size")));
    ck_assert_uint_eq(tensor->size, slice_u64(golden_member(item, "nbytes")));
    ck_assert_uint_eq(golden_items(golden_member(item, "shape"), expect_extent, tensor), tensor->rank);
    expect_sha256(expected->bench, expected->catalog, tensor, item);
}

static void expect_tensors(
    const struct bench *bench, const struct catalog *catalog, enum group_kind kind, struct slice want) {
    struct expected_group expected = {bench, catalog, &catalog->groups[kind]};
    ck_assert_uint_eq(golden_items(want, expect_tensor, &expected), expected.group->count);
    ck_assert(!expected.group->damaged);
    if (expected.group->count) {
        ck_assert(expected.group->present);
        ck_assert_uint_eq(expected.group->index.len, 8 + 216 * expected.group->count);
    }
}

static void expect_section(struct slice item, size_t index, void *arg) {
    const struct expected_group *expected = arg;
    const struct catalog *catalog = expected->catalog;
    char kind[40], checksum[20], path[64], label[64], hex[20];
    ck_assert_uint_lt(index, catalog->section_count);
    const struct section *section = &catalog->sections[index];
    golden_text(golden_member(item, "kind"), kind, sizeof kind);
    golden_text(golden_member(item, "checksum"), checksum, sizeof checksum);
    snprintf(hex, sizeof hex, "%016" PRIx64, section->checksum);
    ck_assert_str_eq(section->kind, kind);
    ck_assert_str_eq(hex, checksum);
    ck_assert_uint_eq(section->offset, slice_u64(golden_member(item, "offset")));
    ck_assert_uint_eq(section->size, slice_u64(golden_member(item, "size")));
    snprintf(path, sizeof path, "sections/%s.bin", kind);
    const struct blob *blob = blob_of(catalog, path);
    ck_assert(blob && blob->at.off == section->offset && blob->at.len == section->size);
    struct unit unit = unit_get(&catalog->units, index);
    snprintf(label, sizeof label, "%s section", kind);
    ck_assert_str_eq(unit.label, label);
    ck_assert(unit.index == index && unit.kind == DIGEST_FNV1A64 && unit_holds(expected->bench, &unit));
    ck_assert(unit.at.off == section->offset && unit.at.len == section->size);
}

static void expect_file(const struct bench *bench, const struct catalog *catalog, struct slice want) {
    struct expected_group all = {bench, catalog, NULL};
    ck_assert_str_eq(catalog->format, "oam");
    ck_assert_uint_eq(catalog->version, slice_u64(golden_member(want, "version")));
    ck_assert_uint_eq(catalog->source_bytes, slice_u64(golden_member(want, "file_bytes")));
    ck_assert_uint_eq(
        golden_items(golden_member(want, "sections"), expect_section, &all), catalog->section_count);
    ck_assert_uint_eq(catalog->units.count, catalog->section_count);
    ck_assert_uint_eq(catalog->head.len, 64 + 64 * (uint64_t)catalog->section_count);
    ck_assert(catalog->exports && catalog->groups[GROUP_TENSORS].present);
    ck_assert_uint_eq(catalog->part_count, 1);
    expect_config(bench, catalog, golden_member(want, "config"));
    expect_tensors(bench, catalog, GROUP_TENSORS, golden_member(want, "weights"));
    expect_tensors(bench, catalog, GROUP_STATE, golden_member(want, "state"));
    expect_optimizer(bench, catalog, golden_member(want, "optimizer"));
    expect_progress(catalog, golden_member(want, "progress"));
}

static void valid_file(struct slice item, size_t index, void *arg) {
    (void)index;
    struct slice want, side = slice_member(item, "expect_file");
    char name[128], expect_name[128];
    uint8_t *text = NULL;
    if (slice_is(golden_member(item, "valid"), "false"))
        return;
    golden_text(golden_member(item, "file"), name, sizeof name);
    if (side.at) {
        golden_text(side, expect_name, sizeof expect_name);
        text = golden_load(expect_name, &want.len);
        want.at = (const char *)text;
    } else
        want = golden_member(item, "expect");
    for (int strict = 0; strict < 2; strict++) {
        struct bench bench = load(name, strict);
        struct catalog catalog;
        struct ckpt_err err = {0};
        int rc = bench_parse(&bench, &format_oam, 0, &catalog, &err);
        ck_assert_msg(rc == 0, "%s: %s", name, err.msg);
        ck_assert_uint_eq(bench.in_order, catalog.section_count);
        ck_assert_uint_eq(bench.blamed, 0);
        expect_file(&bench, &catalog, want);
        catalog_free(&catalog);
        unload(&bench);
    }
    free(text);
    ++*(unsigned *)arg;
}

START_TEST(valid_files_hold_what_the_reference_reports) {
    unsigned seen = 0;
    golden_cases("oam", valid_file, &seen);
    ck_assert_uint_gt(seen, 90);
}
END_TEST

/* ---- damage, seen lazily ---------------------------------------------------------------------------- */

#define FULL "oam/valid/q4_q8_dense_mixed.oam"

/* What a damaged section costs: its own document or group and nothing else. */
static const struct damage {
    const char *section;
    uint64_t at; /* a byte of it that must not be 0xff */
    int group;
    const char *document;
} damages[] = {
    {"config", 0, -1, "config.json"},
    {"weights", 8, GROUP_TENSORS, NULL},
    {"state", 7, GROUP_STATE, NULL},
    {"optimizer", 0, GROUP_OPTIMIZER, "optimizer/optimizer.json"},
    {"progress", 40, -1, "progress.json"},
};
#define DAMAGES (int)(sizeof damages / sizeof *damages)

static void damage(struct bench *bench, const struct damage *how) {
    struct catalog catalog;
    ck_assert_int_eq(bench_parse(bench, &format_oam, 0, &catalog, NULL), 0);
    for (uint32_t i = 0; i < catalog.section_count; i++)
        if (!strcmp(catalog.sections[i].kind, how->section))
            writable(bench)[catalog.sections[i].offset + how->at] = 0xff;
    catalog_free(&catalog);
    bench->in_order = bench->blamed = 0;
}

START_TEST(a_damaged_section_costs_itself_alone) {
    const struct damage *how = &damages[_i];
    struct bench bench = load(FULL, false);
    struct catalog catalog;
    struct ckpt_err err = {0};
    damage(&bench, how);
    ck_assert_msg(bench_parse(&bench, &format_oam, 0, &catalog, &err) == 0, "%s", err.msg);
    ck_assert_uint_eq(bench.blamed, 1);
    for (int kind = 0; kind < GROUP_COUNT; kind++) {
        const struct group *group = &catalog.groups[kind];
        ck_assert(group->present);
        ck_assert_int_eq(group->damaged, kind == how->group);
        ck_assert((group->count == 0) == (kind == how->group));
    }
    ck_assert_uint_eq(catalog.document_count, 3);
    for (uint32_t i = 0; i < catalog.document_count; i++) {
        const struct document *document = &catalog.documents[i];
        bool lost = how->document && !strcmp(document->path, how->document);
        ck_assert((document->json == NULL) == lost);
        ck_assert_uint_gt(document->from.len, 0);
    }
    ck_assert_uint_eq(catalog.section_count, 5);
    ck_assert(catalog.has_optimizer);
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

START_TEST(a_strict_judge_names_the_checksum_first) {
    struct bench bench = load(FULL, false);
    struct catalog catalog;
    struct ckpt_err err = {0};
    damage(&bench, &damages[_i]);
    bench.strict = true;
    ck_assert_int_eq(bench_parse(&bench, &format_oam, 0, &catalog, &err), CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "section payload checksum mismatch");
    ck_assert_uint_eq(bench.blamed, 0);
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

START_TEST(a_blind_judge_leaves_the_structural_fault) {
    struct bench bench = load(FULL, false);
    struct catalog catalog;
    struct ckpt_err err = {0};
    damage(&bench, &damages[1]);
    bench.blind = true;
    ck_assert_int_eq(bench_parse(&bench, &format_oam, 0, &catalog, &err), CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "tensor name is not UTF-8");
    ck_assert_ptr_nonnull(strstr(err.msg, "weights section: "));
    catalog_free(&catalog);
    ck_assert_int_eq(bench_parse(&bench, &format_oam, 0, &catalog, NULL), CKPT_E_CORRUPT);
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

START_TEST(other_errors_of_the_judge_end_the_parsing) {
    struct bench bench = load(FULL, false);
    struct catalog catalog;
    struct ckpt_err err = {0};
    damage(&bench, &damages[_i]);
    bench.sick = CKPT_E_INTR;
    ck_assert_int_eq(bench_parse(&bench, &format_oam, 0, &catalog, &err), CKPT_E_INTR);
    ck_assert_int_eq(err.code, CKPT_E_INTR);
    ck_assert_str_eq(err.words, "sick");
    catalog_free(&catalog);
    bench.strict = true;
    ck_assert_int_eq(bench_parse(&bench, &format_oam, 0, &catalog, &err), CKPT_E_INTR);
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

/* ---- any bytes -------------------------------------------------------------------------------------- */

static void parse_any(struct bench *bench) {
    struct catalog catalog;
    struct ckpt_err err = {0};
    int rc = bench_parse(bench, &format_oam, 0, &catalog, &err);
    ck_assert_msg(rc == 0 || rc == CKPT_E_CORRUPT, "%d: %s", rc, err.msg);
    for (uint64_t i = 0; rc == 0 && i < catalog.groups[GROUP_TENSORS].count; i++) {
        struct range at = tensor_range(&catalog, &catalog.groups[GROUP_TENSORS].items[i]);
        ck_assert(at.off <= bench->len && at.len <= bench->len - at.off);
    }
    catalog_free(&catalog);
}

/* Version 1: no checksum keeps a reader from its table. */
static const char *const mutated[] = {"oam/valid/v1_full.oam", FULL};

START_TEST(no_changed_byte_does_harm) {
    static const uint8_t masks[] = {0x01, 0x80, 0xff};
    struct bench bench = load(mutated[_i], false);
    uint8_t *bytes = writable(&bench);
    for (size_t at = 0; at < bench.len; at++)
        for (size_t m = 0; m < sizeof masks; m++)
            for (int blind = 0; blind < 2; blind++) {
                bench.blind = blind;
                bytes[at] ^= masks[m];
                parse_any(&bench);
                bytes[at] ^= masks[m];
            }
    unload(&bench);
}
END_TEST

/* The header's size field is made to fit, or every cut would end there. */
START_TEST(no_cut_does_harm) {
    struct bench bench = load(mutated[0], false);
    uint8_t *bytes = writable(&bench);
    bench.blind = true;
    for (size_t len = bench.len; len-- > 0;) {
        bench.len = len;
        for (int i = 0; i < 8 && len >= 24; i++)
            bytes[16 + i] = (uint8_t)((uint64_t)len >> (8 * i));
        parse_any(&bench);
    }
    unload(&bench);
}
END_TEST

/* ---- files made here -------------------------------------------------------------------------------- */

struct made {
    uint8_t *bytes;
    size_t len;
};

static void put(uint8_t *out, uint64_t value, size_t width) {
    for (size_t i = 0; i < width; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static void put_section(uint8_t *table, uint32_t kind, uint64_t offset, uint64_t size) {
    put(table, kind, 4);
    put(table + 12, offset, 8);
    put(table + 20, size, 8);
}

/* Version 1 with checksums of 0, for blind judges: config with that arch_config, progress. */
static struct made make(const void *arch_config, size_t len) {
    struct made made = {.len = 4096 + 108 + len + 104};
    made.bytes = calloc(1, made.len);
    memcpy(made.bytes, "OAM\0", 4);
    put(made.bytes + 4, 1, 4);
    put(made.bytes + 8, 2, 4);
    put(made.bytes + 16, made.len, 8);
    put_section(made.bytes + 64, OAM_CONFIG, 4096, 108 + len);
    put_section(made.bytes + 128, OAM_PROGRESS, 4096 + 108 + len, 104);
    put(made.bytes + 4096 + 52, len, 4);
    memcpy(made.bytes + 4096 + 108, arch_config, len);
    return made;
}

#define TEXT(literal) literal, sizeof(literal) - 1

static const struct {
    const char *text;
    size_t len;
    bool shown;
} arch_configs[] = {
    {TEXT("{\"a\":1}"), true},
    {TEXT(" \t\r\n[1, {}]\n"), true},
    {TEXT("{\"big\":18446744073709551615,\"a\":1e400,\"a\":2}"), true}, /* a repeated key, as it stands */
    {TEXT("17"), false},
    {TEXT("null"), false},
    {TEXT("\"text\""), false},
    {TEXT("{\"a\":NaN}"), false},
    {TEXT("[Infinity]"), false},
    {TEXT("[1] x"), false},
    {TEXT("[1]\0"), false},
    {TEXT("\0[1]"), false},
    {TEXT("[\"\xff\"]"), false},
    {TEXT("\xef\xbb\xbf[1]"), false},
    {TEXT("   "), false},
    {TEXT("[1,]"), false},
    {TEXT("{"), false},
};
#define ARCH_CONFIGS (int)(sizeof arch_configs / sizeof *arch_configs)

START_TEST(arch_config_is_shown_when_it_is_a_json_container) {
    struct made made = make(arch_configs[_i].text, arch_configs[_i].len);
    struct bench bench = {.bytes = made.bytes, .len = made.len, .blind = true};
    struct catalog catalog;
    struct ckpt_err err = {0};
    ck_assert_msg(bench_parse(&bench, &format_oam, 0, &catalog, &err) == 0, "%s", err.msg);
    struct slice got = golden_member(json_of(&catalog, "config.json"), "arch_config");
    const char *text = arch_configs[_i].text + strspn(arch_configs[_i].text, " \t\r\n");
    ck_assert_msg(
        arch_configs[_i].shown ? !memcmp(got.at, text, got.len) && got.len > 2 : slice_is(got, "null"),
        "%.*s", (int)got.len, got.at);
    ck_assert_uint_eq(blob_of(&catalog, "raw/arch_config.bin")->at.len, arch_configs[_i].len);
    catalog_free(&catalog);
    free(made.bytes);
}
END_TEST

START_TEST(inside_something_ranges_move_and_offsets_stay) {
    struct bench file = load(FULL, false);
    struct bench bench = {.len = file.len + 4096};
    uint8_t *bytes = calloc(1, bench.len);
    memcpy(bytes + 4096, file.bytes, file.len);
    bench.bytes = bytes;
    bench.strict = true;
    struct catalog inner, plain;
    ck_assert_int_eq(bench_parse(&bench, &format_oam, 4096, &inner, NULL), 0);
    ck_assert_int_eq(bench_parse(&file, &format_oam, 0, &plain, NULL), 0);
    ck_assert_uint_eq(inner.head.off, 4096);
    ck_assert_uint_eq(inner.parts[0].base, 4096);
    ck_assert_uint_eq(inner.parts[0].size, file.len);
    for (int kind = 0; kind < GROUP_COUNT; kind++) {
        ck_assert_uint_eq(inner.groups[kind].index.off, plain.groups[kind].index.off + 4096);
        for (uint64_t i = 0; i < inner.groups[kind].count; i++) {
            const struct tensor *a = &inner.groups[kind].items[i], *b = &plain.groups[kind].items[i];
            ck_assert_uint_eq(a->offset, b->offset);
            ck_assert_uint_eq(tensor_range(&inner, a).off, tensor_range(&plain, b).off + 4096);
        }
    }
    for (uint32_t i = 0; i < inner.blob_count; i++)
        ck_assert_uint_eq(inner.blobs[i].at.off, plain.blobs[i].at.off + 4096);
    for (uint32_t i = 0; i < inner.document_count; i++)
        ck_assert_uint_eq(inner.documents[i].from.off, plain.documents[i].from.off + 4096);
    catalog_free(&inner);
    catalog_free(&plain);
    free(bytes);
    unload(&file);
}
END_TEST

/* ---- what is read ----------------------------------------------------------------------------------- */

/* A file of any size that is zeros but for its first bytes; counts what is read of it. */
struct counted {
    struct source source;
    const uint8_t *front;
    size_t front_len;
    uint64_t bytes, reads;
};

static int counted_pread(
    struct source *source, uint64_t off, void *buf, size_t len, size_t *ret_len, struct ckpt_err *err) {
    struct counted *counted = (struct counted *)source;
    (void)err;
    ck_assert(off <= source->size && len <= source->size - off);
    memset(buf, 0, len);
    if (off < counted->front_len)
        memcpy(buf, counted->front + off, len < counted->front_len - off ? len : counted->front_len - off);
    counted->bytes += len;
    counted->reads++;
    *ret_len = len;
    return 0;
}

static const struct source_ops counted_ops = {.pread = counted_pread};

static int parse_counted(
    struct counted *counted, const void *front, size_t len, uint64_t size, struct catalog *catalog) {
    struct bench bench = {.blind = true};
    const struct unit_judge judge = {.unit = bench_unit, .table = bench_table, .arg = &bench};
    static char name[] = "counted";
    *counted = (struct counted){
        .source = {.ops = &counted_ops, .name = name, .size = size}, .front = front, .front_len = len};
    *catalog = (struct catalog){0};
    struct source *source = &counted->source;
    return format_oam.parse(&source, 0, &judge, catalog, NULL);
}

START_TEST(headers_and_indexes_are_all_that_is_read) {
    struct bench bench = load("oam/valid/tensors_2000.oam", false);
    struct counted counted;
    struct catalog catalog;
    ck_assert_int_eq(parse_counted(&counted, bench.bytes, bench.len, bench.len, &catalog), 0);
    uint64_t wanted = catalog.head.len;
    for (int kind = 0; kind < GROUP_COUNT; kind++)
        wanted += catalog.groups[kind].index.len;
    for (uint32_t i = 0; i < catalog.document_count; i++)
        if (strcmp(catalog.documents[i].path, "optimizer/optimizer.json") != 0)
            wanted += catalog.documents[i].from.len;
    ck_assert_uint_eq(counted.bytes, wanted);
    ck_assert_uint_lt(counted.reads, 30);
    catalog_free(&catalog);
    unload(&bench);
}
END_TEST

START_TEST(a_section_of_200_gigabytes_costs_its_index) {
    struct made made = make("", 0);
    uint64_t blob = (uint64_t)200 << 30, weights = 8 + 216;
    size_t len = made.len + weights;
    uint8_t *bytes = calloc(1, len);
    memcpy(bytes, made.bytes, made.len);
    put(bytes + 8, 3, 4);
    put(bytes + 16, len + blob, 8);
    put_section(bytes + 192, OAM_WEIGHTS, made.len, weights + blob);
    put(bytes + made.len, 1, 4);
    uint8_t *entry = bytes + made.len + 8;
    entry[0] = 'w';
    put(entry + 136, blob, 8);
    entry[145] = 1;
    put(entry + 152, blob / 4, 8);
    struct counted counted;
    struct catalog catalog;
    ck_assert_int_eq(parse_counted(&counted, bytes, len, len + blob, &catalog), 0);
    ck_assert_uint_eq(catalog.groups[GROUP_TENSORS].items[0].size, blob);
    ck_assert_uint_eq(counted.bytes, 64 + 3 * 64 + 108 + 104 + 8 + 216);
    catalog_free(&catalog);

    put(bytes + made.len, 0xffffffff,
        4); /* more tensors than the section has room for: nothing is allocated */
    ck_assert_int_eq(parse_counted(&counted, bytes, len, len + blob, &catalog), CKPT_E_CORRUPT);
    ck_assert_uint_lt(catalog.arena.used, 100000);
    catalog_free(&catalog);
    free(bytes);
    free(made.bytes);
}
END_TEST

/* The fourth tensor has the first one's name. Entries are read in order, a name before the rest of its entry.
 */
START_TEST(a_repeated_name_is_older_than_what_follows_it) {
    static const struct {
        uint64_t entry;
        const char *words, *says;
    } cases[] = {{1, "invalid scalar type", ": 99,"}, {3, "invalid or duplicate tensor name", "tensor 3,"}};
    struct bench bench = load("oam/broken/invalid_or_duplicate_tensor_name_2.oam", false);
    uint8_t *bytes = writable(&bench);
    uint64_t weights;
    memcpy(&weights, bytes + 64 + 64 + 12, sizeof weights);
    bench.blind = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct catalog catalog;
        struct ckpt_err err = {0};
        uint8_t *dtype = bytes + weights + 8 + 216 * cases[i].entry + 144, was = *dtype;
        *dtype = 99;
        ck_assert_int_eq(bench_parse(&bench, &format_oam, 0, &catalog, &err), CKPT_E_CORRUPT);
        ck_assert_str_eq(err.words, cases[i].words);
        ck_assert_msg(strstr(err.msg, cases[i].says) != NULL, "%s", err.msg);
        *dtype = was;
        catalog_free(&catalog);
    }
    unload(&bench);
}
END_TEST

START_TEST(probing_looks_at_the_magic) {
    ck_assert(format_oam.probe((const uint8_t *)"OAM\0", 4, 4));
    ck_assert(!format_oam.probe((const uint8_t *)"OAM\0", 3, 3));
    ck_assert(!format_oam.probe((const uint8_t *)"OAM1", 4, 4));
    ck_assert(!format_oam.probe(NULL, 0, 0));
    ck_assert_str_eq(format_oam.suffix, ".oam");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("oam");
    TCase *tcase = tcase_create("oam");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, broken_files_get_the_words_of_the_reference);
    tcase_add_test(tcase, malformed_files_with_right_digests_are_refused_lazily_too);
    tcase_add_test(tcase, valid_files_hold_what_the_reference_reports);
    tcase_add_loop_test(tcase, a_damaged_section_costs_itself_alone, 0, DAMAGES);
    tcase_add_loop_test(tcase, a_strict_judge_names_the_checksum_first, 0, DAMAGES);
    tcase_add_test(tcase, a_blind_judge_leaves_the_structural_fault);
    tcase_add_loop_test(tcase, other_errors_of_the_judge_end_the_parsing, 0, DAMAGES);
    tcase_add_loop_test(tcase, no_changed_byte_does_harm, 0, 2);
    tcase_add_test(tcase, no_cut_does_harm);
    tcase_add_loop_test(tcase, arch_config_is_shown_when_it_is_a_json_container, 0, ARCH_CONFIGS);
    tcase_add_test(tcase, inside_something_ranges_move_and_offsets_stay);
    tcase_add_test(tcase, headers_and_indexes_are_all_that_is_read);
    tcase_add_test(tcase, a_section_of_200_gigabytes_costs_its_index);
    tcase_add_test(tcase, a_repeated_name_is_older_than_what_follows_it);
    tcase_add_test(tcase, probing_looks_at_the_magic);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
