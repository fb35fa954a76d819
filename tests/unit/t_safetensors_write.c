/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"
#include "pack/metadata.h"
#include "pack/safetensors.h"

#include "format/safetensors_layout.h"

#include <string.h>

static struct ckpt_err err;

static void setup(void) {
    folder_make();
    err = (struct ckpt_err){0};
}

/* ---- what is written ----------------------------------------------------------------------------------- */

static const uint64_t two_three[] = {2, 3}, one[] = {1}, three[] = {3}, none[] = {0, 7};

static struct tensor tensor_of(const char *name, enum dtype dtype, const uint64_t *shape, uint32_t rank) {
    struct tensor tensor = {.name = name,
        .name_len = (uint32_t)strlen(name),
        .dtype = (uint8_t)dtype,
        .shape = shape,
        .rank = rank};
    (void)tensor_check(&tensor, &tensor.size);
    return tensor;
}

/* Each tensor's data is its name's first byte, over and over. */
static int put_letters(void *arg, const struct tensor *tensor, struct out *out, struct ckpt_err *put_err) {
    (void)arg;
    int rc = 0;
    for (uint64_t i = 0; !rc && i < tensor->size; i++)
        rc = out_put(out, tensor->name, 1, put_err);
    return rc;
}

static struct ckpt_pair pair_of(const char *key, const char *value) {
    return (struct ckpt_pair){key, strlen(key), value, strlen(value)};
}

static int write_to(const char *name, const struct tensor *items, uint64_t count,
    const struct ckpt_pair *metadata, size_t metadata_count) {
    const struct safetensors_content content = {.items = items,
        .count = count,
        .metadata = metadata,
        .metadata_count = metadata_count,
        .put = put_letters};
    return safetensors_write(folder_file(name), &content, NULL, &err);
}

/* The header is padded, its length is right, and the data comes after it. */
static void assert_written(const char *name, const char *header, const char *data) {
    struct buf file = file_load(folder_file(name));
    size_t length = (strlen(header) + 7) / 8 * 8;
    ck_assert_uint_eq(file.len, 8 + length + strlen(data));
    for (unsigned i = 0; i < 8; i++)
        ck_assert_uint_eq((uint8_t)file.bytes[i], length >> (8 * i) & 0xff);
    ck_assert_mem_eq(file.bytes + 8, header, strlen(header));
    for (size_t i = strlen(header); i < length; i++)
        ck_assert_int_eq(file.bytes[8 + i], ' ');
    ck_assert_mem_eq(file.bytes + 8 + length, data, strlen(data));
    buf_free(&file);
}

START_TEST(large_elements_come_first_then_names) {
    const struct tensor items[] = {
        tensor_of("b", DTYPE_U8, three, 1),
        tensor_of("z", DTYPE_F64, one, 1),
        tensor_of("ab", DTYPE_I8, one, 1),
        tensor_of("a", DTYPE_F32, two_three, 2),
        tensor_of("e", DTYPE_F32, none, 2),
        tensor_of("s", DTYPE_BF16, NULL, 0),
    };
    ck_assert_msg(write_to("f", items, 6, NULL, 0) == 0, "%s", err.msg);
    assert_written("f",
        "{\"z\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
        "\"e\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[32,32]},"
        "\"s\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[32,34]},"
        "\"ab\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[34,35]},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[35,38]}}",
        "zzzzzzzzaaaaaaaaaaaaaaaaaaaaaaaassabbb");
}
END_TEST

START_TEST(metadata_comes_first_in_its_order) {
    const struct tensor item = tensor_of("w", DTYPE_U8, one, 1);
    const struct ckpt_pair pairs[] = {
        pair_of("z", "last letter"), pair_of("a", "\"\\\n\x01/\x7f\xc3\xa9"), pair_of("", "")};
    ck_assert_msg(write_to("f", &item, 1, pairs, 3) == 0, "%s", err.msg);
    assert_written("f",
        "{\"__metadata__\":{\"z\":\"last letter\",\"a\":\"\\\"\\\\\\n\\u0001/\x7f\xc3\xa9\",\"\":\"\"},"
        "\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
        "w");
}
END_TEST

START_TEST(nothing_at_all) {
    ck_assert_msg(write_to("f", NULL, 0, NULL, 0) == 0, "%s", err.msg);
    assert_written("f", "{}", "");
    const struct ckpt_pair pair = pair_of("k", "v");
    ck_assert_msg(write_to("f", NULL, 0, &pair, 1) == 0, "%s", err.msg);
    assert_written("f", "{\"__metadata__\":{\"k\":\"v\"}}", "");
}
END_TEST

START_TEST(names_are_escaped) {
    struct tensor item = tensor_of("q\"\\\t\xf0\x9f\x98\x80", DTYPE_U8, one, 1);
    ck_assert_msg(write_to("f", &item, 1, NULL, 0) == 0, "%s", err.msg);
    assert_written("f",
        "{\"q\\\"\\\\\\t\xf0\x9f\x98\x80\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "q");
    item.name = "n\0m", item.name_len = 3;
    ck_assert_msg(write_to("f", &item, 1, NULL, 0) == 0, "%s", err.msg);
    assert_written("f", "{\"n\\u0000m\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "n");
}
END_TEST

START_TEST(a_quantized_tensor_has_the_place_of_its_values) {
    struct tensor items[] = {tensor_of("h", DTYPE_F16, one, 1), tensor_of("q", DTYPE_F32, three, 1)};
    items[1].encoding = ENCODING_Q4, items[1].block = 32, items[1].size = 12; /* as 3 float32 have */
    ck_assert_msg(write_to("f", items, 2, NULL, 0) == 0, "%s", err.msg);
    assert_written("f",
        "{\"q\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[12,14]}}",
        "qqqqqqqqqqqqhh");
}
END_TEST

/* ---- what is refused, before anything is written ---------------------------------------------------------
 */

static void assert_refused(const struct tensor *items, uint64_t count, const struct ckpt_pair *metadata,
    size_t metadata_count, int code, const char *words) {
    ck_assert_int_eq(write_to("f", items, count, metadata, metadata_count), code);
    ck_assert_int_eq(err.code, code);
    ck_assert_msg(strstr(err.msg, words) != NULL, "'%s' is not in: %s", words, err.msg);
    ck_assert_uint_eq(folder_entries(), 0);
}

START_TEST(names_that_do_not_fit) {
    struct tensor items[] = {tensor_of("w", DTYPE_U8, one, 1), tensor_of("v", DTYPE_U8, one, 1),
        tensor_of("w", DTYPE_F32, one, 1)};
    assert_refused(items, 3, NULL, 0, CKPT_E_INVAL, "tensor 'w' is there twice");
    items[2] = tensor_of("\xff", DTYPE_U8, one, 1);
    assert_refused(items, 3, NULL, 0, CKPT_E_INVAL, "the name is not UTF-8");
    items[2] = tensor_of("__metadata__", DTYPE_U8, one, 1);
    assert_refused(items, 3, NULL, 0, CKPT_E_UNSUPPORTED, "'__metadata__': safetensors has this name");
}
END_TEST

START_TEST(types_and_shapes_that_do_not_fit) {
    static uint64_t ones[SAFETENSORS_RANK_MAX + 1];
    for (size_t i = 0; i <= SAFETENSORS_RANK_MAX; i++)
        ones[i] = 1;
    struct tensor item = tensor_of("w", DTYPE_C128, one, 1);
    assert_refused(&item, 1, NULL, 0, CKPT_E_UNSUPPORTED, "tensor 'w': safetensors has no type C128");
    item = tensor_of("w", DTYPE_U8, ones, SAFETENSORS_RANK_MAX + 1);
    assert_refused(&item, 1, NULL, 0, CKPT_E_UNSUPPORTED, "rank 1025");
    item.rank--;
    ck_assert_msg(write_to("f", &item, 1, NULL, 0) == 0, "%s", err.msg);
}
END_TEST

START_TEST(too_many_bytes) {
    struct tensor items[] = {tensor_of("a", DTYPE_U8, one, 1), tensor_of("b", DTYPE_U8, one, 1)};
    items[0].size = items[1].size = UINT64_MAX / 8 * 1;
    items[1].size += (uint64_t)1 << 62;
    assert_refused(items, 2, NULL, 0, CKPT_E_LIMIT, "tensor 'b'");
}
END_TEST

START_TEST(metadata_that_does_not_fit) {
    struct ckpt_pair pairs[] = {pair_of("a", "1"), pair_of("b", "2"), pair_of("a", "1")};
    assert_refused(NULL, 0, pairs, 3, CKPT_E_INVAL, "metadata key 'a' is there twice");
    pairs[2] = pair_of("c", "\xc3");
    assert_refused(NULL, 0, pairs, 3, CKPT_E_INVAL, "metadata 'c': the value is not UTF-8");
    pairs[2] = pair_of("\x80", "");
    assert_refused(NULL, 0, pairs, 3, CKPT_E_INVAL, "is not UTF-8");
}
END_TEST

START_TEST(a_header_over_the_limit) {
    size_t len = SAFETENSORS_HEADER_MAX - strlen("{\"__metadata__\":{\"k\":\"\"}}");
    char *value = malloc(len + 2);
    memset(value, 'x', len + 1);
    struct ckpt_pair pair = {"k", 1, value, len + 1};
    assert_refused(NULL, 0, &pair, 1, CKPT_E_LIMIT, "takes 100000008 bytes, the format allows 100000000");
    pair.value_len = len;
    ck_assert_msg(write_to("f", NULL, 0, &pair, 1) == 0, "%s", err.msg);
    struct stat at;
    ck_assert_int_eq(stat(folder_file("f"), &at), 0);
    ck_assert_int_eq(at.st_size, 8 + (off_t)SAFETENSORS_HEADER_MAX);
    free(value);
}
END_TEST

/* ---- failing on the way ----------------------------------------------------------------------------------
 */

static int put_too_little(void *arg, const struct tensor *tensor, struct out *out, struct ckpt_err *put_err) {
    (void)arg;
    return out_put(out, tensor->name, 1, put_err);
}

static int put_nothing(void *arg, const struct tensor *tensor, struct out *out, struct ckpt_err *put_err) {
    (void)arg, (void)out;
    return tensor->name[0] == 'b' ? err_set(put_err, CKPT_E_CORRUPT, "no data") : 0;
}

START_TEST(the_old_file_stays_when_data_is_missing) {
    const struct tensor items[] = {tensor_of("a", DTYPE_U8, none, 2), tensor_of("b", DTYPE_U8, three, 1)};
    struct safetensors_content content = {.items = items, .count = 2, .put = put_too_little};
    file_store(folder_file("f"), "old", 3);
    ck_assert_int_eq(safetensors_write(folder_file("f"), &content, NULL, &err), CKPT_E_INVAL);
    ck_assert_msg(strstr(err.msg, "tensor 'a': its data ends at 1, not at 0") != NULL, "%s", err.msg);
    content.put = put_nothing;
    ck_assert_int_eq(safetensors_write(folder_file("f"), &content, NULL, &err), CKPT_E_CORRUPT);
    ck_assert_msg(strstr(err.msg, "tensor 'b': no data") != NULL, "%s", err.msg);
    struct buf old = file_load(folder_file("f"));
    ck_assert_str_eq(old.bytes, "old");
    buf_free(&old);
    ck_assert_uint_eq(folder_entries(), 1);
}
END_TEST

/* ---- metadata ------------------------------------------------------------------------------------------ */

static void assert_pairs(const struct metadata *metadata, const char *json) {
    struct buf text = {0};
    pairs_put(&text, metadata->pairs, metadata->count);
    ck_assert_str_eq(buf_cstr(&text), json);
    buf_free(&text);
}

static int count_differ(void *arg, const struct ckpt_pair *pair, struct ckpt_err *differ_err) {
    (void)differ_err;
    ck_assert_str_eq(pair->key, "a");
    ++*(unsigned *)arg;
    return 0;
}

START_TEST(metadata_is_read_as_readers_take_it) {
    const char *json = "{\"b\": \"1\", \"a\": \"2\", \"n\": [1, {\"x\": 2}], \"b\": \"3\\u0000\\u00e9\"}";
    struct metadata metadata = {0}, others = {0};
    ck_assert_int_eq(metadata_read(&metadata, json, strlen(json), &others, &err), 0);
    assert_pairs(&metadata, "{\"a\":\"2\",\"b\":\"3\\u0000\xc3\xa9\"}");
    assert_pairs(&others, "{\"n\":\"[1, {\\\"x\\\": 2}]\"}");
    ck_assert_int_eq(metadata_read(&metadata, "null", 4, &others, &err), 0);
    ck_assert_int_eq(metadata_read(&metadata, "{\"n\": 1}", 8, NULL, &err), 0);
    assert_pairs(&metadata, "{\"a\":\"2\",\"b\":\"3\\u0000\xc3\xa9\",\"n\":\"1\"}");
    ck_assert_ptr_eq(metadata_find(&metadata, "a"), &metadata.pairs[0]);
    ck_assert_ptr_null(metadata_find(&metadata, "c"));
    metadata_free(&metadata);
    metadata_free(&others);
}
END_TEST

START_TEST(malformed_metadata) {
    const char *const texts[] = {
        "{", "{\"a\"", "{\"a\":", "{\"a\":[", "{\"a\":1", "{\"a\":\"\\ud800\"}", "{\"a\":\"1\",}", "{1:2}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct metadata metadata = {0};
        ck_assert_int_eq(metadata_read(&metadata, texts[i], strlen(texts[i]), NULL, &err), CKPT_E_CORRUPT);
        ck_assert_uint_eq(metadata.count, 0);
        metadata_free(&metadata);
    }
}
END_TEST

START_TEST(of_one_key_the_last_value_stays) {
    struct metadata metadata = {0};
    unsigned differ = 0;
    const char *const texts[] = {"a", "1", "b", "2", "a", "1", "b", "2", "a", "3"};
    for (size_t i = 0; i < 10; i += 2)
        ck_assert_int_eq(metadata_add(&metadata, texts[i], 1, texts[i + 1], 1, &err), 0);
    ck_assert_int_eq(metadata_settle(&metadata, count_differ, &differ, &err), 0);
    assert_pairs(&metadata, "{\"b\":\"2\",\"a\":\"3\"}");
    ck_assert_uint_eq(differ, 1);
    metadata_free(&metadata);
}
END_TEST

START_TEST(pairs_are_copied_in_one_piece) {
    const struct ckpt_pair pairs[] = {{"k\0k", 3, "", 0}, {"", 0, "v", 1}};
    struct ckpt_pair *copy = NULL;
    ck_assert_int_eq(pairs_copy(pairs, 2, &copy, &err), 0);
    ck_assert_uint_eq(copy[0].key_len, 3);
    ck_assert_mem_eq(copy[0].key, "k\0k", 4);
    ck_assert_str_eq(copy[0].value, "");
    ck_assert_str_eq(copy[1].value, "v");
    free(copy);
    ck_assert_int_eq(pairs_copy(NULL, 0, &copy, &err), 0);
    ck_assert_ptr_nonnull(copy);
    free(copy);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("safetensors_write");
    TCase *tests = tcase_create("safetensors_write");
    tcase_add_checked_fixture(tests, setup, folder_clear);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, large_elements_come_first_then_names);
    tcase_add_test(tests, metadata_comes_first_in_its_order);
    tcase_add_test(tests, nothing_at_all);
    tcase_add_test(tests, names_are_escaped);
    tcase_add_test(tests, a_quantized_tensor_has_the_place_of_its_values);
    tcase_add_test(tests, names_that_do_not_fit);
    tcase_add_test(tests, types_and_shapes_that_do_not_fit);
    tcase_add_test(tests, too_many_bytes);
    tcase_add_test(tests, metadata_that_does_not_fit);
    tcase_add_test(tests, a_header_over_the_limit);
    tcase_add_test(tests, the_old_file_stays_when_data_is_missing);
    tcase_add_test(tests, metadata_is_read_as_readers_take_it);
    tcase_add_test(tests, malformed_metadata);
    tcase_add_test(tests, of_one_key_the_last_value_stays);
    tcase_add_test(tests, pairs_are_copied_in_one_piece);
    suite_add_tcase(suite, tests);
    return unit_run(suite);
}
