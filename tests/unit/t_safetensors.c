/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ovf.h"
#include "tensors.h"

#include <inttypes.h>

/* ---- files made here -------------------------------------------------------------------------------- */

static void put_length(struct buf *file, uint64_t length) {
    for (int i = 0; i < 8; i++)
        buf_putc(file, (char)(length >> 8 * i & 0xff));
}

/* A file of this header and data_bytes bytes of data that count up. */
static struct buf make(const char *header, size_t data_bytes) {
    struct buf file = {0};
    put_length(&file, strlen(header));
    buf_puts(&file, header);
    for (size_t i = 0; i < data_bytes; i++)
        buf_putc(&file, (char)i);
    ck_assert(!file.failed);
    return file;
}

#define ENTRY(name, dtype, shape, begin, end)                                                                \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void assert_refused(const char *header, size_t data_bytes, int code, const char *words) {
    struct buf file = make(header, data_bytes);
    struct parsed parsed;
    parse_bytes(&parsed, "x.safetensors", file.bytes, file.len);
    ck_assert_msg(parsed.rc == code, "%.200s: %d %s", header, parsed.rc, parsed.err.msg);
    ck_assert_msg(strstr(parsed.err.msg, words) != NULL, "\"%s\" has no \"%s\"", parsed.err.msg, words);
    close_parsed(&parsed);
    buf_free(&file);
}

/* ---- golden files ----------------------------------------------------------------------------------- */

/* What the message of each broken rule must say. */
static const char *const words_of[][2] = {
    {"file shorter than 8 bytes", "starts with a length of 8"},
    {"header length beyond file", "bytes are missing"},
    {"header too large", "is over the format's 100000000"},
    {"header not JSON", "the header is not JSON: "},
    {"header does not start with {", "does not start with '{'"},
    {"header not UTF-8", "is not UTF-8"},
    {"hole", "a hole of "},
    {"bytes after last tensor", "after the last tensor"},
    {"overlap", " overlap those of tensor "},
    {"out of bounds", "bytes are missing"},
    {"size mismatch", " needs "},
    {"partial byte", "do not fill whole bytes"},
    {"unknown dtype", "dtype"},
    {"duplicate key", " twice"},
    {"shape overflow", "2^64 "},
    {"offsets malformed", ": data_offsets "},
    {"shape malformed", ": shape "},
    {"entry malformed", ": the entry "},
    {"metadata not a map of texts", "__metadata__"},
    {"nested too deep", "nested deeper than"},
    {"begin after end", ": data_offsets "},
};

/* Of the cases that readers may judge differently ("ambiguous"), those that the manifest calls broken and the
 * reference implementation (safetensors 0.8.0) accepts: so do we. On the others the two agree. */
static bool library_accepts(const char *file) {
    static const char *const accepted[] = {"header_does_not_start_with_brace_3", "duplicate_key_2",
        "duplicate_key_4", "metadata_not_a_map_of_texts_6"};
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
        if (strstr(file, accepted[i]))
            return true;
    return false;
}

static void check_broken(const struct parsed *parsed, const char *file, struct slice row) {
    struct buf class = slice_text(slice_member(row, "class"));
    const char *words = NULL;
    for (size_t i = 0; i < sizeof words_of / sizeof *words_of; i++)
        if (!strcmp(words_of[i][0], buf_cstr(&class)))
            words = words_of[i][1];
    ck_assert_msg(words != NULL, "unknown class %s", buf_cstr(&class));
    ck_assert_msg(parsed->rc == CKPT_E_CORRUPT, "%s: %d", file, parsed->rc);
    ck_assert_msg(strstr(parsed->err.msg, words) != NULL, "%s: %s", file, parsed->err.msg);
    ck_assert(!strncmp(parsed->err.words, parsed->err.msg, strlen(parsed->err.words)));
    buf_free(&class);
}

/* A map of strings to strings, compared member by member. */
static void check_metadata(const struct document *document, struct slice want) {
    ck_assert_str_eq(document->path, "metadata.json");
    ck_assert(json_valid(document->json, document->json_len));
    ck_assert_int_eq(document->json[document->json_len], '\0');
    struct json json;
    unsigned left = 0;
    json_start(&json, want.at, want.len);
    json_next(&json);
    while (json_next(&json) == JSON_KEY) {
        struct buf key = {0};
        buf_put(&key, json.value, json.value_len);
        struct buf value = slice_text(slice_here(&json, json_next(&json)));
        struct slice got = slice_member((struct slice){document->json, document->json_len}, buf_cstr(&key));
        ck_assert_ptr_nonnull(got.at);
        struct buf text = slice_text(got);
        ck_assert_str_eq(buf_cstr(&text), buf_cstr(&value));
        buf_free(&key);
        buf_free(&value);
        buf_free(&text);
        left++;
    }
    json_stop(&json);
    json_start(&json, document->json, document->json_len);
    json_next(&json);
    for (; json_next(&json) == JSON_KEY; left--)
        json_next(&json);
    json_stop(&json);
    ck_assert_uint_eq(left, 0);
}

static void check_valid(struct parsed *parsed, const char *file, struct slice expect) {
    ck_assert_msg(!parsed->rc, "%s: %s", file, parsed->err.msg);
    const struct catalog *catalog = &parsed->catalog;
    uint64_t header = 8 + slice_u64(slice_member(expect, "header_bytes"));
    check_tensors(parsed, slice_member(expect, "tensors"));
    ck_assert_str_eq(catalog->format, "safetensors");
    ck_assert_uint_eq(catalog->source_bytes, slice_u64(slice_member(expect, "file_bytes")));
    ck_assert_uint_eq(catalog->document_count, 1);
    check_metadata(&catalog->documents[0], slice_member(expect, "metadata"));
    ck_assert_uint_eq(catalog->documents[0].from.len, header);
    ck_assert_uint_eq(catalog->groups[GROUP_TENSORS].index.len, header);
    ck_assert(catalog->groups[GROUP_TENSORS].present && !catalog->groups[GROUP_STATE].present);
    ck_assert(!catalog->exports && !catalog->sharded && !catalog->has_optimizer);
    ck_assert(catalog->part_count == 1 && !catalog->parts[0].name && !catalog->units.count);
    ck_assert_uint_eq(catalog->parts[0].size, catalog->source_bytes);
}

static void check_case(const char *file, struct slice row) {
    struct parsed parsed;
    parse_golden(&parsed, file);
    if (slice_is(slice_member(row, "valid"), "true"))
        check_valid(&parsed, file, slice_member(row, "expect"));
    else if (library_accepts(file))
        ck_assert_msg(!parsed.rc, "%s: %s", file, parsed.err.msg);
    else
        check_broken(&parsed, file, row);
    close_parsed(&parsed);
}

START_TEST(golden_files_are_judged_as_the_manifest_says) {
    ck_assert_uint_ge(manifest_each("safetensors", check_case), 110);
}
END_TEST

/* ---- places and order ------------------------------------------------------------------------------- */

START_TEST(tensors_are_in_header_order_and_ranges_start_at_the_base) {
    struct buf file = make("{" ENTRY("z", "U8", "[2]", 3, 5) "," ENTRY("a", "U8", "[3]", 0, 3) "," ENTRY(
                               "m", "F4", "[2,2]", 5, 7) "}",
        7);
    struct buf inside = {0};
    buf_puts(&inside, "0123456789");
    buf_put(&inside, file.bytes, file.len);
    struct source *whole, *source;
    ck_assert_int_eq(source_from_mem("whole", inside.bytes, inside.len, &whole, NULL), 0);
    ck_assert_int_eq(source_slice(whole, 10, file.len, &source, NULL), 0);
    struct catalog catalog = {0};
    struct unit_judge judge = {0};
    ck_assert_int_eq(format_safetensors.parse(&source, 10, &judge, &catalog, NULL), 0);
    const struct group *group = &catalog.groups[GROUP_TENSORS];
    ck_assert_uint_eq(group->count, 3);
    ck_assert_str_eq(group->items[0].name, "z");
    ck_assert_str_eq(group->items[2].name, "m");
    ck_assert_uint_eq(group->items[0].offset, file.len - 7 + 3);
    ck_assert_uint_eq(group->items[2].elements, 4);
    ck_assert_uint_eq(tensor_range(&catalog, &group->items[1]).off, inside.len - 7);
    ck_assert(group->index.off == 10 && group->index.len == file.len - 7);
    ck_assert_uint_eq(catalog.parts[0].base, 10);
    catalog_free(&catalog);
    source_close(source);
    source_close(whole);
    buf_free(&file);
    buf_free(&inside);
}
END_TEST

START_TEST(what_is_said_twice_counts_once) {
    struct buf file = make(" \n{" ENTRY("b", "U8", "[1]", 1, 2) "," ENTRY("a", "U8", "[1]", 0, 1) "," ENTRY(
                               "b", "U8", "[1]", 1, 2) ",\"__metadata__\":null}",
        2);
    struct parsed parsed;
    parse_bytes(&parsed, "x.safetensors", file.bytes, file.len);
    ck_assert_msg(!parsed.rc, "%s", parsed.err.msg);
    const struct group *group = &parsed.catalog.groups[GROUP_TENSORS];
    ck_assert_uint_eq(group->count, 2);
    ck_assert_str_eq(group->items[0].name, "b");
    ck_assert_str_eq(group->items[1].name, "a");
    ck_assert_str_eq(parsed.catalog.documents[0].json, "null");
    close_parsed(&parsed);
    buf_free(&file);
}
END_TEST

START_TEST(faults_are_named_with_their_numbers) {
    static const struct {
        const char *header;
        size_t data;
        const char *words;
    } cases[] = {
        {"{" ENTRY("w", "F32", "[3]", 0, 8) "}", 8,
            "tensor 'w': data_offsets [0, 8] hold 8 bytes, shape [3] of F32 needs 12"},
        {"{" ENTRY("w", "F4", "[3]", 0, 2) "}", 2,
            "tensor 'w': shape [3] of F4: 3 x 4 bits do not fill whole bytes"},
        {"{" ENTRY("w", "C128", "[1]", 0, 16) "}", 16, "unknown dtype 'C128'"},
        {"{" ENTRY("a\\nb'\\u0085", "X", "[1]", 0, 16) "}", 16,
            "tensor 'a\\x0ab\\'\\xc2\\x85': unknown dtype 'X'"},
        {"{" ENTRY("w", "U8", "[18446744073709551616]", 0, 1) "}", 1,
            "shape holds '18446744073709551616', not a whole number from 0 to 18446744073709551615"},
        {"{" ENTRY("w", "U8", "[1]", 0, 9223372036854775808) "}", 1,
            "data_offsets holds '9223372036854775808', not a whole number from 0 to 9223372036854775807"},
        {"{" ENTRY("w", "U8", "[-0]", 0, 0) "}", 0, "shape holds '-0'"},
        {"{" ENTRY("w", "U8", "[[1]]", 0, 1) "}", 1, "shape holds something that is no number"},
        {"{" ENTRY("w", "U8", "[4]", 4, 0) "}", 4, "begin after they end: [4, 0]"},
        {"{" ENTRY("w", "U8", "[8]", 0, 8) "}", 5,
            "data_offsets [0, 8] pass the end of the data, which has 5 bytes: truncated, 3 bytes are missing"},
        {"{" ENTRY("a", "U8", "[2]", 0, 2) "," ENTRY("b", "U8", "[2]", 3, 5) "}", 5,
            "a hole of 1 bytes before tensor 'b': data bytes [2, 3] belong to no tensor"},
        {"{" ENTRY("a", "U8", "[2]", 0, 2) "," ENTRY("b", "U8", "[2]", 1, 3) "}", 3,
            "tensor 'b': data_offsets [1, 3] overlap those of tensor 'a', which end at 2"},
        {"{" ENTRY("a", "U8", "[2]", 0, 2) "," ENTRY("e", "U8", "[0]", 3, 3) "}", 2, "1 bytes are missing"},
        {"{" ENTRY("a", "U8", "[2]", 0, 2) "}", 6, "4 bytes after the last tensor: data bytes [2, 6]"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0, "tensor 'w': the entry has no data_offsets"},
        {"{\"w\":{\"x\":1,\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"\\u0078\":2}}", 0,
            "tensor 'w': the field 'x' is there twice"},
        {"{\"__metadata__\":null,\"__metadata__\":{}}", 0, "the header holds the key '__metadata__' twice"},
        {"{\"__metadata__\":true}", 0, "__metadata__ is not an object"},
        {" \t[]", 0, "the header of 4 bytes does not start with '{'"},
        {" \r\n ", 0, "the header of 4 bytes does not start with '{'"},
        {"{\"__metadata__\":{\"k\":[]}}", 0, "__metadata__: the value of 'k' is not a string"},
        {"{" ENTRY("a", "U8", "[1]", 0, 1) "," ENTRY("b", "U8", "[1]", 1, 2) "," ENTRY(
             "\\u0061", "I8", "[1]", 0, 1) "}",
            2, "the header holds the key 'a' twice, with different entries"},
        {"{" ENTRY("a", "U8", "[2]", 0, 2) "," ENTRY("a", "U8", "[1,2]", 0, 2) "}", 2,
            "the header holds the key 'a' twice, with different entries"},
        {"{" ENTRY("a", "U8", "[2,1]", 0, 2) "," ENTRY("a", "U8", "[1,2]", 0, 2) "}", 2,
            "the header holds the key 'a' twice, with different entries"},
        {"{\"a\\\\b\":1}", 0, "tensor 'a\\\\b': the entry is not an object"},
        {"{} x", 0, "the header is not JSON: more follows the value at byte 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].header, cases[i].data, CKPT_E_CORRUPT, cases[i].words);
}
END_TEST

START_TEST(what_is_unusual_but_right_is_read) {
    static const struct {
        const char *header;
        size_t data;
        uint64_t tensors;
    } cases[] = {
        {"{}", 0, 0},
        {"{}  \n\t", 0, 0},
        {"{\"__metadata__\":{}}", 0, 0},
        /* an empty tensor at each border */
        {"{" ENTRY("b", "U8", "[2]", 2, 4) "," ENTRY("e", "U8", "[0]", 4, 4) "," ENTRY(
             "f", "U8", "[0]", 2, 2) "," ENTRY("g", "U8", "[0]", 0, 0) "," ENTRY("a", "U8", "[2]", 0, 2) "}",
            4, 5},
        {"{" ENTRY("a", "F8_E5M2FNUZ", "[2]", 0, 2) "," ENTRY("b", "F8_E4M3FNUZ", "[1]", 2, 3) "}", 3, 2},
        /* names whose FNV-1a 32 is the same */
        {"{" ENTRY("declinate", "U8", "[]", 0, 1) "," ENTRY("macallums", "U8", "[]", 1, 2) "}", 2, 2},
        {"{\"w\":{\"x\":{\"shape\":[{}]},\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf file = make(cases[i].header, cases[i].data);
        struct parsed parsed;
        parse_bytes(&parsed, "no suffix", file.bytes, file.len);
        ck_assert_msg(!parsed.rc, "%s: %s", cases[i].header, parsed.err.msg);
        ck_assert_uint_eq(parsed.catalog.groups[GROUP_TENSORS].count, cases[i].tensors);
        close_parsed(&parsed);
        buf_free(&file);
    }
}
END_TEST

START_TEST(ranks_have_a_limit) {
    struct buf header = {0};
    for (int rank = 1024; rank <= 1025; rank++) {
        buf_clear(&header);
        buf_puts(&header, "{\"w\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"shape\":[1");
        for (int i = 1; i < rank; i++)
            buf_puts(&header, ",1");
        buf_puts(&header, "]}}");
        struct buf file = make(buf_cstr(&header), 1);
        struct parsed parsed;
        parse_bytes(&parsed, "x", file.bytes, file.len);
        ck_assert_int_eq(parsed.rc, rank == 1024 ? 0 : CKPT_E_LIMIT);
        close_parsed(&parsed);
        buf_free(&file);
    }
    buf_free(&header);
}
END_TEST

/* ---- large and hostile ------------------------------------------------------------------------------ */

START_TEST(a_million_brackets_are_an_error) {
    struct buf header = {0};
    buf_puts(&header, "{\"a\":");
    for (int i = 0; i < 1000000; i++)
        buf_putc(&header, '[');
    assert_refused(buf_cstr(&header), 0, CKPT_E_CORRUPT, "nested deeper than");
    buf_free(&header);
}
END_TEST

START_TEST(members_that_are_passed_over_nest_as_deep_as_the_reference_reads) {
    for (int depth = 125; depth < 127; depth++) {
        struct buf header = {0};
        buf_puts(&header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":");
        for (int i = 0; i < depth; i++)
            buf_putc(&header, '[');
        for (int i = 0; i < depth; i++)
            buf_putc(&header, ']');
        buf_puts(&header, "}}");
        struct buf file = make(buf_cstr(&header), 0);
        struct parsed parsed;
        parse_bytes(&parsed, "x.safetensors", file.bytes, file.len);
        ck_assert_msg(!parsed.rc == (depth == 125), "%d: %s", depth, parsed.err.msg);
        close_parsed(&parsed);
        buf_free(&file);
        buf_free(&header);
    }
}
END_TEST

START_TEST(long_names_and_shapes_do_not_flood_a_message) {
    struct buf header = {0};
    buf_puts(&header, "{\"");
    for (int i = 0; i < 100000; i++)
        buf_puts(&header, i % 2 ? "\\u0007" : "\xe6\xa8\xa1");
    buf_puts(&header, "\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"shape\":[0");
    for (int i = 1; i < 1000; i++)
        buf_puts(&header, ",9223372036854775807");
    buf_puts(&header, "]}}");
    assert_refused(
        buf_cstr(&header), 1, CKPT_E_CORRUPT, "...': data_offsets [0, 1] hold 1 bytes, shape [0, 9223");
    buf_free(&header);
}
END_TEST

START_TEST(many_tensors_are_all_there) {
    enum { COUNT = 20000 };
    struct buf header = {0};
    for (unsigned i = 0; i < COUNT; i++)
        buf_printf(&header, "%c\"layer.%u\":{\"dtype\":\"U8\",\"shape\":[1,1],\"data_offsets\":[%u,%u]}",
            i ? ',' : '{', i, COUNT - 1 - i, COUNT - i);
    buf_putc(&header, '}');
    struct buf file = make(buf_cstr(&header), COUNT);
    struct parsed parsed;
    parse_bytes(&parsed, "x", file.bytes, file.len);
    ck_assert_msg(!parsed.rc, "%s", parsed.err.msg);
    ck_assert_uint_eq(parsed.catalog.groups[GROUP_TENSORS].count, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        ck_assert_uint_eq(parsed.catalog.groups[GROUP_TENSORS].items[i].offset, file.len - 1 - i);
    close_parsed(&parsed);
    header.len--;
    buf_puts(&header, "," ENTRY("layer.77", "U8", "[1]", 0, 1) "}");
    assert_refused(buf_cstr(&header), COUNT, CKPT_E_CORRUPT, "holds the key 'layer.77' twice");
    buf_free(&header);
    buf_free(&file);
}
END_TEST

static struct buf small_file(void) {
    return make("{\"__metadata__\":{\"k\":\"v\\n\"}," ENTRY("a", "F16", "[2,1]", 0, 4) "," ENTRY(
                    "\\u00e9", "U8", "[3]", 4, 7) "}",
        7);
}

START_TEST(each_cut_tells_how_much_is_missing) {
    struct buf file = small_file();
    for (size_t len = 0; len < file.len; len++) {
        struct parsed parsed;
        char missing[64];
        parse_bytes(&parsed, len < 9 ? "x.safetensors" : "blob", file.bytes, len);
        ck_assert_msg(parsed.rc == CKPT_E_CORRUPT, "%zu: %d", len, parsed.rc);
        size_t known = len < file.len - 7 ? file.len - 7 : file.len; /* the header's end, then the data's */
        snprintf(missing, sizeof missing, " %zu bytes are missing", known - len);
        if (len >= 8)
            ck_assert_msg(strstr(parsed.err.msg, missing) != NULL, "%zu: %s", len, parsed.err.msg);
        close_parsed(&parsed);
    }
    buf_free(&file);
}
END_TEST

START_TEST(a_cut_file_whose_length_looks_like_another_format_is_a_cut_file) {
    struct parsed parsed; /* 0x88b1f, as gzip starts */
    parse_bytes(&parsed, "blob", "\x1f\x8b\x08\0\0\0\0\0{\"a", 11);
    ck_assert_int_eq(parsed.rc, CKPT_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(parsed.err.msg, " 559900 bytes are missing"));
    close_parsed(&parsed);
}
END_TEST

START_TEST(no_mutated_byte_does_harm) {
    static const char values[] = "\0\xff\"\\{}[],:09-.e au";
    struct buf file = small_file();
    unsigned good = 0, bad = 0;
    for (size_t at = 0; at < file.len; at++) {
        char saved = file.bytes[at];
        for (size_t i = 0; i < 8 + sizeof values - 1; i++) {
            file.bytes[at] = (char)(i < 8 ? saved ^ 1 << i : values[i - 8]);
            struct parsed parsed;
            parse_bytes(&parsed, "x.safetensors", file.bytes, file.len);
            ck_assert_msg(parsed.rc == 0 || parsed.rc == CKPT_E_CORRUPT, "byte %zu: %s", at, parsed.err.msg);
            parsed.rc ? bad++ : good++;
            close_parsed(&parsed);
        }
        file.bytes[at] = saved;
    }
    ck_assert_uint_gt(good, 100); /* data, metadata, names */
    ck_assert_uint_gt(bad, 1000);
    buf_free(&file);
}
END_TEST

/* ---- what is no checkpoint -------------------------------------------------------------------------- */

#define BYTES(text) text, sizeof(text) - 1

START_TEST(common_mistakes_are_told_by_name) {
    static const struct {
        const char *bytes;
        size_t len;
        const char *words;
    } cases[] = {
        {BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"), "a Git LFS pointer"},
        {BYTES("\xef\xbb\xbf\n <!DOCTYPE html><html>"), "an HTML page"},
        {BYTES("<HTML>"), "an HTML page"},
        {BYTES("<?xml version=\"1.0\"?><Error>"), "an XML document"},
        {BYTES("PK\3\4\0\0\0\0\0\0"), "zip archives of pickles"},
        {BYTES("\x80\2\x8a\nl\xfc\x9c"), "a Python pickle"},
        {BYTES("\x80\4\x95\1\0\0\0\0\0\0\0N."), "a Python pickle"},
        {BYTES("\x1f\x8b\x08\0"), "gzip"},
        {BYTES("GGUF\3\0\0\0"), "GGUF"},
        {BYTES("\x89HDF\r\n\x1a\n"), "HDF5"},
        {BYTES("\x93NUMPY\1\0"), "NumPy"},
        {BYTES(""), "the file is empty"},
        {BYTES("\xde\xad\xbe\xef"), "no known format starts with the bytes deadbeef"},
        {BYTES("{\"model_type\":\"llama\"}"), "no index of safetensors files"},
        {BYTES("{not JSON"), "no index of safetensors files"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const names[] = {"pytorch_model", "model.safetensors"};
        bool telling = i < 11; /* bytes that are no damaged checkpoint either, whatever the name */
        for (int n = 0; n < 1 + telling; n++) {
            struct parsed parsed;
            parse_bytes(&parsed, names[n], cases[i].bytes, cases[i].len);
            ck_assert_msg(parsed.rc == CKPT_E_FORMAT, "case %zu: %d %s", i, parsed.rc, parsed.err.msg);
            ck_assert_msg(strstr(parsed.err.msg, cases[i].words) != NULL, "case %zu: %s", i, parsed.err.msg);
            ck_assert(!strncmp(parsed.err.msg, "not a checkpoint: ", 18));
            close_parsed(&parsed);
        }
    }
}
END_TEST

START_TEST(formats_are_found_by_content_then_by_name) {
    const uint8_t good[] = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, noise[] = {1, 2, 3};
    const uint8_t nine[] = {1, 0, 0, 0, 0, 0, 0, 0, '{'};
    ck_assert_ptr_eq(format_find(good, sizeof good, 10, NULL), &format_safetensors);
    ck_assert_ptr_eq(format_find(good, sizeof good, 10, "a.index.json"), &format_safetensors);
    ck_assert_ptr_null(format_find(good, sizeof good, 9, NULL));
    ck_assert_ptr_null(format_find(nine, sizeof nine, 9, NULL));
    ck_assert_ptr_null(format_find(noise, sizeof noise, 3, NULL));
    ck_assert_ptr_null(format_find(noise, sizeof noise, 3, "safetensors"));
    ck_assert_ptr_null(format_find(noise, 0, 0, NULL));
    ck_assert_ptr_eq(format_find(noise, sizeof noise, 3, "/a/b.safetensors"), &format_safetensors);
    ck_assert_ptr_eq(format_find(noise, sizeof noise, 3, "b.safetensors.index.json"), &format_index);
    ck_assert_ptr_eq(format_find((const uint8_t *)" \n{", 3, 3, NULL), &format_index);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("safetensors");
    TCase *tcase = tcase_create("safetensors");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, golden_files_are_judged_as_the_manifest_says);
    tcase_add_test(tcase, tensors_are_in_header_order_and_ranges_start_at_the_base);
    tcase_add_test(tcase, what_is_said_twice_counts_once);
    tcase_add_test(tcase, faults_are_named_with_their_numbers);
    tcase_add_test(tcase, what_is_unusual_but_right_is_read);
    tcase_add_test(tcase, ranks_have_a_limit);
    tcase_add_test(tcase, a_million_brackets_are_an_error);
    tcase_add_test(tcase, members_that_are_passed_over_nest_as_deep_as_the_reference_reads);
    tcase_add_test(tcase, long_names_and_shapes_do_not_flood_a_message);
    tcase_add_test(tcase, many_tensors_are_all_there);
    tcase_add_test(tcase, each_cut_tells_how_much_is_missing);
    tcase_add_test(tcase, a_cut_file_whose_length_looks_like_another_format_is_a_cut_file);
    tcase_add_test(tcase, no_mutated_byte_does_harm);
    tcase_add_test(tcase, common_mistakes_are_told_by_name);
    tcase_add_test(tcase, formats_are_found_by_content_then_by_name);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
