/* SPDX-License-Identifier: Apache-2.0 */
#include "tensors.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- a folder of its own for each test -------------------------------------------------------------- */

static char folder[64];

static void setup(void) {
    strcpy(folder, "/tmp/t_index.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static const char *path_of(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const void *bytes, size_t len) {
    FILE *out = fopen(path_of(name), "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(bytes, 1, len, out), len);
    ck_assert_int_eq(fclose(out), 0);
}

/* A shard of U8 tensors of one byte each, named by the letters and holding their letter. */
static void write_shard(const char *name, const char *letters) {
    struct buf header = {0}, file = {0};
    for (unsigned i = 0; letters[i]; i++)
        buf_printf(&header, "%c\"%c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%u,%u]}",
            i ? ',' : '{', letters[i], i, i + 1);
    buf_putc(&header, '}');
    for (int i = 0; i < 8; i++)
        buf_putc(&file, (char)(header.len >> 8 * i & 0xff));
    buf_put(&file, header.bytes, header.len);
    buf_puts(&file, letters);
    write_bytes(name, file.bytes, file.len);
    buf_free(&header);
    buf_free(&file);
}

#define INDEX "model.safetensors.index.json"

static void parse_index(struct parsed *parsed, const char *text) {
    write_bytes(INDEX, text, strlen(text));
    parse_file(parsed, path_of(INDEX));
}

static void assert_refused(const char *text, int code, const char *words) {
    struct parsed parsed;
    parse_index(&parsed, text);
    ck_assert_msg(parsed.rc == code, "%s: %d %s", text, parsed.rc, parsed.err.msg);
    ck_assert_msg(strstr(parsed.err.msg, words) != NULL, "\"%s\" has no \"%s\"", parsed.err.msg, words);
    close_parsed(&parsed);
}

/* ---- golden sets ------------------------------------------------------------------------------------ */

static const char *const words_of[][2] = {
    {"shard missing", "'model-00002-of-00002.safetensors', which weight_map names, is not beside the index"},
    {"tensor not in shard", "tensor 'a.weight' is not in the file 'model-00002-of-00002.safetensors'"},
    {"shard path leaves folder",
        "'../good/model-00002-of-00002.safetensors', which would not be a file beside"},
    {"index not JSON", "the index is not JSON: "},
    {"index malformed", "the index has no weight_map"},
};

static void check_broken(const struct parsed *parsed, const char *file, struct slice row) {
    struct buf class = slice_text(slice_member(row, "class"));
    const char *words = NULL;
    for (size_t i = 0; i < sizeof words_of / sizeof *words_of; i++)
        if (!strcmp(words_of[i][0], buf_cstr(&class)))
            words = words_of[i][1];
    ck_assert_msg(words != NULL, "unknown class %s", buf_cstr(&class));
    ck_assert_msg(parsed->rc == CKPT_E_CORRUPT, "%s: %d", file, parsed->rc);
    ck_assert_msg(strstr(parsed->err.msg, words) != NULL, "%s: %s", file, parsed->err.msg);
    buf_free(&class);
}

static void check_shards(struct parsed *parsed, struct slice rows) {
    struct json json = {0};
    struct slice row;
    while (slice_each(rows, &json, &row)) {
        struct buf file = slice_text(slice_member(row, "file"));
        const struct tensor *tensor = check_tensor(parsed, row);
        ck_assert_str_eq(parsed->catalog.parts[tensor->part].name, buf_cstr(&file));
        buf_free(&file);
    }
}

static void check_case(const char *file, struct slice row) {
    struct parsed parsed;
    parse_golden(&parsed, file);
    if (slice_is(slice_member(row, "valid"), "true")) {
        struct slice expect = slice_member(row, "expect");
        ck_assert_msg(!parsed.rc, "%s: %s", file, parsed.err.msg);
        ck_assert_uint_eq(parsed.catalog.groups[GROUP_TENSORS].count, 4);
        if (expect.at && !slice_is(expect, "null"))
            check_shards(&parsed, slice_member(expect, "tensors"));
    } else {
        check_broken(&parsed, file, row);
    }
    close_parsed(&parsed);
}

START_TEST(golden_sets_are_judged_as_the_manifest_says) {
    ck_assert_uint_ge(manifest_each("safetensors-index", check_case), 7);
}
END_TEST

/* ---- sets made here --------------------------------------------------------------------------------- */

START_TEST(shards_become_one_source_in_the_order_of_their_names) {
    write_shard("s2", "xay");
    write_shard("s1", "bq");
    struct parsed parsed;
    /* "x" of s2 is not mapped, "q" of s1 neither */
    const char *text =
        " {\"weight_map\":{\"a\":\"s2\",\"b\":\"s1\",\"y\":\"s2\"}, \"metadata\": {\"total_size\" : 1}}";
    parse_index(&parsed, text);
    ck_assert_msg(!parsed.rc, "%s", parsed.err.msg);
    const struct catalog *catalog = &parsed.catalog;
    const struct group *group = &catalog->groups[GROUP_TENSORS];
    ck_assert_uint_eq(group->count, 3);
    for (uint64_t i = 0; i < 3; i++) {
        char byte;
        ck_assert_int_eq(group->items[i].name[0], "bay"[i]);
        ck_assert_uint_eq(group->items[i].part, i > 0);
        ck_assert_int_eq(
            source_read(parsed.source, tensor_range(catalog, &group->items[i]).off, &byte, 1, NULL), 0);
        ck_assert_int_eq(byte, "bay"[i]);
    }
    ck_assert_uint_eq(catalog->part_count, 2);
    ck_assert_str_eq(catalog->parts[0].name, "s1");
    ck_assert_uint_eq(catalog->parts[0].base, strlen(text));
    ck_assert_uint_eq(catalog->parts[1].base, strlen(text) + catalog->parts[0].size);
    ck_assert_uint_eq(catalog->source_bytes, parsed.source->size);
    ck_assert_str_eq(catalog->format, "safetensors-index");
    ck_assert(catalog->sharded && catalog->exports && group->present && !catalog->units.count);
    ck_assert_str_eq(catalog->documents[0].path, "metadata.json");
    ck_assert_str_eq(catalog->documents[0].json, "{\"total_size\" : 1}");
    ck_assert_uint_eq(catalog->documents[0].from.len, strlen(text));
    close_parsed(&parsed);
}
END_TEST

START_TEST(metadata_is_shown_whatever_it_is) {
    static const char *const values[] = {"null", "[1]", "\"x\"", "7", "{\"a\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[80];
        struct parsed parsed;
        snprintf(text, sizeof text, "{\"metadata\":%s,\"weight_map\":{}}", values[i]);
        parse_index(&parsed, text);
        ck_assert_msg(!parsed.rc, "%s", parsed.err.msg);
        ck_assert_str_eq(parsed.catalog.documents[0].json, values[i]);
        close_parsed(&parsed);
    }
}
END_TEST

START_TEST(an_index_may_name_no_tensor_and_have_other_members) {
    struct parsed parsed;
    parse_index(&parsed, "{\"x\":[{\"x\":1}],\"weight_map\":{}}");
    ck_assert_msg(!parsed.rc, "%s", parsed.err.msg);
    ck_assert_uint_eq(parsed.catalog.groups[GROUP_TENSORS].count, 0);
    ck_assert_uint_eq(parsed.catalog.part_count, 0);
    ck_assert_str_eq(parsed.catalog.documents[0].json, "{}");
    close_parsed(&parsed);
}
END_TEST

START_TEST(an_index_is_found_by_content) {
    write_shard("s", "a");
    struct parsed parsed;
    const char *text = "{\"weight_map\":{\"a\":\"s\"}}";
    write_bytes("renamed", text, strlen(text));
    parse_file(&parsed, path_of("renamed"));
    ck_assert_msg(!parsed.rc, "%s", parsed.err.msg);
    close_parsed(&parsed);
}
END_TEST

START_TEST(malformed_indexes_are_refused) {
    write_shard("s", "a");
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "is not JSON"},
        {"[]", "the index is JSON, but not an object"},
        {"{}", "the index has no weight_map"},
        {"{\"weight_map\":{}} {}", "is not JSON: more follows"},
        {"{\"weight_map\":[]}", "weight_map is JSON, but not an object"},
        {"{\"weight_map\":null}", "weight_map is JSON, but not an object"},
        {"{\"weight_map\":{\"a\":1}}", "weight_map: the file of tensor 'a' is not a string"},
        {"{\"weight_map\":{\"a\":null}}", "weight_map: the file of tensor 'a' is not a string"},
        {"{\"weight_map\":{\"a\":[\"s\"]}}", "weight_map: the file of tensor 'a' is not a string"},
        {"{\"weight_map\":{},\"weight\\u005fmap\":{}}", "the index holds the key 'weight_map' twice"},
        {"{\"weight_map\":{\"a\":\"s\",\"\\u0061\":\"t\"}}", "weight_map holds the key 'a' twice"},
        {"{\"weight_map\":{\"b\":\"s\"}}", "tensor 'b' is not in the file 's', where weight_map puts it"},
        {"{\"weight_map\":{\"a\":\"t\"}}", "the file 't', which weight_map names, is not beside the index"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].text, CKPT_E_CORRUPT, cases[i].words);
}
END_TEST

START_TEST(shard_names_stay_in_the_folder) {
    static const char *const names[] = {
        "", "..", "/etc/passwd", "a/s", "../s", "./s", "s\\u002f..", "\\u002e\\u002e", "s\\u0000/", "s..t"};
    write_shard("s", "a");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", names[i]);
        assert_refused(text, CKPT_E_CORRUPT, "which would not be a file beside the index: not opened");
    }
}
END_TEST

START_TEST(damaged_shards_are_named) {
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\n";
    const char *text = "{\"weight_map\":{\"a\":\"s\"}}";
    write_bytes("s", pointer, sizeof pointer - 1);
    assert_refused(text, CKPT_E_FORMAT, "shard 's': not a checkpoint: a Git LFS pointer");
    write_bytes("s", "", 0);
    assert_refused(text, CKPT_E_CORRUPT, "shard 's': the file has 0 bytes");
    write_bytes("s", "\x1f\x8b\x08\0\0\0\0\0{", 9); /* a length that looks like gzip */
    assert_refused(text, CKPT_E_CORRUPT, "bytes are missing");
    write_shard("s", "abc");
    struct stat st;
    ck_assert_int_eq(stat(path_of("s"), &st), 0);
    ck_assert_int_eq(truncate(path_of("s"), st.st_size - 2), 0);
    assert_refused(text, CKPT_E_CORRUPT, "shard 's': tensor 'c': data_offsets [2, 3] pass the end");
    ck_assert_int_eq(truncate(path_of("s"), 20), 0);
    assert_refused(text, CKPT_E_CORRUPT, "bytes are missing");
    ck_assert_int_eq(unlink(path_of("s")), 0);
    ck_assert_int_eq(mkdir(path_of("s"), 0700), 0);
    assert_refused(text, CKPT_E_FORMAT, "is a directory");
}
END_TEST

START_TEST(a_set_without_a_folder_finds_no_shard) {
    const char *text = "{\"weight_map\":{\"a\":\"s\"}}";
    struct parsed parsed;
    parse_bytes(&parsed, INDEX, text, strlen(text));
    ck_assert_int_eq(parsed.rc, CKPT_E_CORRUPT);
    close_parsed(&parsed);
}
END_TEST

START_TEST(no_mutated_byte_does_harm) {
    static const char values[] = "\0\xff\"\\{}[],:s/. ";
    char text[] = "{\"metadata\":{\"t\":1},\"weight_map\":{\"a\":\"s\",\"b\":\"s\",\"c\":\"t\"}}";
    write_shard("s", "bax");
    write_shard("t", "c");
    unsigned good = 0, bad = 0;
    for (size_t at = 0; text[at]; at++) {
        char saved = text[at];
        for (size_t i = 0; i < 8 + sizeof values - 1; i++) {
            text[at] = (char)(i < 8 ? saved ^ 1 << i : values[i - 8]);
            struct parsed parsed;
            write_bytes(INDEX, text, sizeof text - 1);
            parse_file(&parsed, path_of(INDEX));
            ck_assert_msg(parsed.rc == 0 || parsed.rc == CKPT_E_CORRUPT || parsed.rc == CKPT_E_FORMAT,
                "byte %zu: %s", at, parsed.err.msg);
            parsed.rc ? bad++ : good++;
            close_parsed(&parsed);
        }
        text[at] = saved;
    }
    ck_assert_uint_gt(good, 20);
    ck_assert_uint_gt(bad, 500);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("index");
    TCase *tcase = tcase_create("index");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, golden_sets_are_judged_as_the_manifest_says);
    tcase_add_test(tcase, shards_become_one_source_in_the_order_of_their_names);
    tcase_add_test(tcase, metadata_is_shown_whatever_it_is);
    tcase_add_test(tcase, an_index_may_name_no_tensor_and_have_other_members);
    tcase_add_test(tcase, an_index_is_found_by_content);
    tcase_add_test(tcase, malformed_indexes_are_refused);
    tcase_add_test(tcase, shard_names_stay_in_the_folder);
    tcase_add_test(tcase, damaged_shards_are_named);
    tcase_add_test(tcase, a_set_without_a_folder_finds_no_shard);
    tcase_add_test(tcase, no_mutated_byte_does_harm);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
