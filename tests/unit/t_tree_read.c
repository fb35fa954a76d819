/* SPDX-License-Identifier: Apache-2.0 */
/* What the files hold: every kind against its expected bytes, at any offset, and when something is damaged.
 */
#include "dequant/dequant.h"
#include "tree/views.h"
#include "world.h"

#include <cJSON.h>
#include <pthread.h>

static const uint64_t small[] = {2, 3}, long_[] = {300, 333}, odd[] = {1001}, none[] = {0, 5}, four[] = {4};

enum { F32, BF16, Q4, Q8, C128, EMPTY, F8, F6, TENSORS };
static struct tensor weights[TENSORS], state[1];

static struct world *world_of_tensors(void) {
    struct world *world = world_new();
    weights[F32] = world_tensor("f32", DTYPE_F32, ENCODING_DENSE, small, 2, 3);
    weights[BF16] = world_tensor("bf\n\"16", DTYPE_BF16, ENCODING_DENSE, odd, 1, 101);
    weights[Q4] = world_tensor("q4", DTYPE_F32, ENCODING_Q4, long_, 2, 5000);
    weights[Q8] = world_tensor("q8", DTYPE_F32, ENCODING_Q8, odd, 1, 80000);
    weights[C128] = world_tensor("c128", DTYPE_C128, ENCODING_DENSE, small, 2, 90000);
    weights[EMPTY] = world_tensor("empty", DTYPE_BF16, ENCODING_DENSE, none, 2, 0);
    weights[F8] = world_tensor("f8", DTYPE_F8_E4M3, ENCODING_DENSE, long_, 2, 91000);
    weights[F6] = world_tensor("f6", DTYPE_F6_E3M2, ENCODING_DENSE, four, 1, 98);
    state[0] = world_tensor("s/1", DTYPE_I16, ENCODING_DENSE, four, 1, 191500);
    world->catalog.groups[GROUP_TENSORS] =
        (struct group){.present = true, .items = weights, .count = TENSORS};
    world->catalog.groups[GROUP_STATE] = (struct group){.present = true, .items = state, .count = 1};
    world->catalog.exports = true;
    return world;
}

/* ---- expectations, by the kernels on whole tensors -------------------------------------------------------
 */

static void put_stored(struct buf *out, const struct world *world, const struct tensor *tensor) {
    buf_put(out, world->bytes + 1000 + tensor->offset, tensor->size);
}

static void put_values(struct buf *out, const struct world *world, const struct tensor *tensor) {
    const uint8_t *in = world->bytes + 1000 + tensor->offset;
    uint64_t blocks = (tensor->elements + 31) / 32;
    uint8_t *values = malloc(tensor->elements * 4 + 1);
    if (tensor->encoding == ENCODING_Q4)
        dequant_q4(in, in + 16 * blocks, 0, tensor->elements, values);
    else if (tensor->encoding == ENCODING_Q8)
        dequant_q8(in, in + 32 * blocks, 0, tensor->elements, values);
    else
        widen(tensor->dtype, in, tensor->elements, values);
    buf_put(out, values, tensor->elements * 4);
    free(values);
}

static void expect(struct world *world, const char *path, const struct buf *want) {
    struct buf got = world_cat(world, path);
    ck_assert_msg(got.len == want->len && world_stat(world, path).size == got.len, "%s: %zu bytes, want %zu",
        path, got.len, want->len);
    size_t at = 0; /* no ck_assert a byte: each one costs a write */
    while (at < got.len && got.bytes[at] == want->bytes[at])
        at++;
    ck_assert_msg(at == got.len, "%s differs at byte %zu", path, at);
    buf_free(&got);
}

START_TEST(tensors_are_stored_bytes_or_exact_values) {
    struct world *world = world_of_tensors();
    world_build(world);
    for (unsigned i = 0; i < TENSORS; i++) {
        const struct tensor *tensor = &weights[i];
        char name[CKPT_NAME_MAX + 1], path[300];
        struct buf want = {0};
        put_stored(&want, world, tensor);
        tree_file_name(tensor->name, tensor->name_len, ".bin", name);
        snprintf(path, sizeof path, "raw/tensors/%s", name);
        expect(world, path, &want);
        buf_clear(&want);
        if (i != F6) {
            npy_header(tensor, &want);
            if (i == F32 || i == C128)
                put_stored(&want, world, tensor);
            else
                put_values(&want, world, tensor);
            tree_file_name(tensor->name, tensor->name_len, ".npy", name);
            snprintf(path, sizeof path, "tensors/%s", name);
            expect(world, path, &want);
        }
        buf_free(&want);
    }
    world_free(world);
}
END_TEST

START_TEST(exports_are_ordered_padded_and_complete) {
    struct world *world = world_of_tensors();
    world_build(world);
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"f32\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"q4\":{\"dtype\":\"F32\",\"shape\":[300,333],\"data_offsets\":[24,399624]},"
        "\"q8\":{\"dtype\":\"F32\",\"shape\":[1001],\"data_offsets\":[399624,403628]},"
        "\"bf\\n\\\"16\":{\"dtype\":\"BF16\",\"shape\":[1001],\"data_offsets\":[403628,405630]},"
        "\"empty\":{\"dtype\":\"BF16\",\"shape\":[0,5],\"data_offsets\":[405630,405630]},"
        "\"f8\":{\"dtype\":\"F8_E4M3\",\"shape\":[300,333],\"data_offsets\":[405630,505530]},"
        "\"f6\":{\"dtype\":\"F6_E3M2\",\"shape\":[4],\"data_offsets\":[505530,505533]}}";
    struct buf want = {0};
    size_t len = (sizeof header - 1 + 7) / 8 * 8;
    for (unsigned i = 0; i < 8; i++)
        buf_putc(&want, (char)(len >> (8 * i) & 255));
    buf_puts(&want, header);
    while (want.len < 8 + len)
        buf_putc(&want, ' ');
    put_stored(&want, world, &weights[F32]);
    put_values(&want, world, &weights[Q4]);
    put_values(&want, world, &weights[Q8]);
    put_stored(&want, world, &weights[BF16]);
    put_stored(&want, world, &weights[F8]);
    put_stored(&want, world, &weights[F6]);
    expect(world, "export/model.safetensors", &want);
    buf_free(&want);
    world_free(world);
}
END_TEST

START_TEST(an_export_may_be_empty) {
    struct world *world = world_of_tensors();
    world->catalog.groups[GROUP_TENSORS].items = &weights[C128];
    world->catalog.groups[GROUP_TENSORS].count = 1;
    world_build(world);
    struct buf want = {0};
    buf_put(&want, "\x20\0\0\0\0\0\0\0", 8);
    buf_puts(&want, "{\"__metadata__\":{\"format\":\"pt\"}}");
    expect(world, "export/model.safetensors", &want);
    buf_free(&want);
    world_free(world);
}
END_TEST

START_TEST(the_index_has_a_line_a_tensor) {
    struct world *world = world_of_tensors();
    world->catalog.groups[GROUP_TENSORS].count = 2;
    world_build(world);
    struct buf got = world_cat(world, "tensors.json");
    ck_assert_str_eq(got.bytes,
        "{\"tensors\": {\n"
        "\"f32\": {\"dtype\": \"F32\", \"shape\": [2, 3], \"encoding\": \"dense\", \"block_size\": 0, \"elements\": 6, "
        "\"bytes\": 24, \"offset\": 3, \"npy\": \"tensors/f32.npy\", \"raw\": \"raw/tensors/f32.bin\"},\n"
        "\"bf\\n\\\"16\": {\"dtype\": \"BF16\", \"shape\": [1001], \"encoding\": \"dense\", \"block_size\": 0, "
        "\"elements\": 1001, \"bytes\": 2002, \"offset\": 101, \"npy\": \"tensors/bf%0A\\\"16.npy\", "
        "\"raw\": \"raw/tensors/bf%0A\\\"16.bin\"}\n"
        "}, \"state\": {\n"
        "\"s/1\": {\"dtype\": \"I16\", \"shape\": [4], \"encoding\": \"dense\", \"block_size\": 0, \"elements\": 4, "
        "\"bytes\": 8, \"offset\": 191500, \"npy\": \"state/s%2F1.npy\", \"raw\": \"raw/state/s%2F1.bin\"}\n"
        "}}\n");
    buf_free(&got);
    world_free(world);
}
END_TEST

START_TEST(the_index_names_shards_and_missing_views) {
    struct world *world = world_of_tensors();
    world->catalog.groups[GROUP_TENSORS].items = &weights[F6];
    world->catalog.groups[GROUP_TENSORS].count = 1;
    world->part.name = "model-1.safetensors";
    world->catalog.sharded = true;
    world->catalog.version = 0;
    world_build(world);
    struct buf got = world_cat(world, "tensors.json");
    ck_assert_ptr_nonnull(strstr(
        got.bytes, "\"npy\": null, \"raw\": \"raw/tensors/f6.bin\", \"shard\": \"model-1.safetensors\"}"));
    buf_free(&got);
    got = world_cat(world, "checkpoint.json");
    ck_assert_ptr_nonnull(strstr(got.bytes, "model-1.safetensors"));
    ck_assert_ptr_nonnull(strstr(got.bytes, "\"version\":\tnull"));
    buf_free(&got);
    world_free(world);
}
END_TEST

START_TEST(without_tensors_the_index_is_still_json) {
    struct world *world = world_new();
    world_build(world);
    struct buf got = world_cat(world, "tensors.json");
    cJSON *json = cJSON_Parse(got.bytes);
    ck_assert(cJSON_IsObject(cJSON_GetObjectItem(json, "tensors")) &&
              cJSON_IsObject(cJSON_GetObjectItem(json, "state")));
    cJSON_Delete(json);
    buf_free(&got);
    world_free(world);
}
END_TEST

START_TEST(documents_and_blobs) {
    struct world *world = world_new();
    struct document documents[] = {
        {.path = "a.json", .json = "{}", .json_len = 2}, {.path = "b.json", .json = "{}\n", .json_len = 3}};
    struct blob blob = {.path = "sections/x.bin", .at = {77, 1000}};
    world->catalog.documents = documents;
    world->catalog.document_count = 2;
    world->catalog.blobs = &blob;
    world->catalog.blob_count = 1;
    struct section section = {
        .kind = "weights", .offset = UINT64_MAX, .size = 12, .checksum = 0xabc, .flags = 5};
    world->catalog.sections = &section;
    world->catalog.section_count = 1;
    world_build(world);
    struct buf want = {0};
    buf_puts(&want, "{}\n");
    expect(world, "a.json", &want);
    expect(world, "b.json", &want);
    buf_clear(&want);
    buf_put(&want, world->bytes + 77, 1000);
    expect(world, "sections/x.bin", &want);
    buf_free(&want);
    struct buf got = world_cat(world, "checkpoint.json");
    ck_assert_ptr_nonnull(strstr(got.bytes, "18446744073709551615")); /* exact, not a double */
    ck_assert_ptr_nonnull(strstr(got.bytes, "\"fnv1a64:0000000000000abc\""));
    ck_assert_int_eq(got.bytes[got.len - 1], '\n');
    buf_free(&got);
    world_free(world);
}
END_TEST

/* ---- random access
 * ------------------------------------------------------------------------------------------ */

static uint32_t dice_state = 12345;

static uint64_t dice(uint64_t sides) {
    dice_state = dice_state * 1664525 + 1013904223;
    return (uint64_t)(dice_state >> 4) % sides;
}

/* Reads of all sizes and alignments are the parts of one whole read; past the end there is nothing. */
static void check_parts(struct world *world, uint64_t ino) {
    struct buf whole = {0};
    struct ckpt_err err;
    struct tree_file *file;
    ck_assert_int_eq(world_read(world, ino, &whole, &err), 0);
    ck_assert_int_eq(tree_open(world->tree, ino, &file, NULL, &err), 0);
    uint8_t *part = malloc(whole.len + 8);
    for (unsigned i = 0; i < 60; i++) {
        uint64_t offset = dice(whole.len + 3), len = dice(i % 3 ? 40 : whole.len + 5);
        uint64_t want = offset >= whole.len ? 0 : len < whole.len - offset ? len : whole.len - offset;
        size_t got = 99;
        part[want] = 0xa5;
        ck_assert_int_eq(tree_read(file, offset, part, len, &got, NULL, &err), 0);
        ck_assert_uint_eq(got, want);
        ck_assert(!got || !memcmp(part, whole.bytes + offset, got));
        ck_assert_uint_eq(part[want], 0xa5);
    }
    size_t got = 99;
    ck_assert(!tree_read(file, UINT64_MAX, part, 1, &got, NULL, &err) && got == 0);
    tree_close(file);
    free(part);
    buf_free(&whole);
}

START_TEST(any_part_of_any_file) {
    struct world *world = world_of_tensors();
    if (_i) {
        world_unit(world, "first", 0, 60000, false);
        world_unit(world, "second", 60000, WORLD_BYTES - 60000, false);
    }
    world_build(world);
    struct ckpt_stat stat;
    for (uint64_t ino = 1; ino <= tree_count(world->tree); ino++)
        if (!tree_stat(world->tree, ino, &stat, NULL) && stat.kind == CKPT_FILE && !stat.dynamic)
            check_parts(world, ino);
    world_free(world);
}
END_TEST

START_TEST(large_tensors_are_converted_batch_by_batch) {
    struct world *world = world_new();
    static const uint64_t many[] = {190001}, fewer[] = {170001};
    weights[0] = world_tensor("wide", DTYPE_F8_E5M2, ENCODING_DENSE, many, 1, 1);
    weights[1] = world_tensor("q8", DTYPE_F32, ENCODING_Q8, fewer, 1, 1);
    weights[2] = world_tensor("q4", DTYPE_F32, ENCODING_Q4, many, 1, 1);
    world->catalog.groups[GROUP_TENSORS] = (struct group){.present = true, .items = weights, .count = 3};
    world_build(world);
    static const char *const paths[] = {"tensors/wide.npy", "tensors/q8.npy", "tensors/q4.npy"};
    for (unsigned i = 0; i < 3; i++) {
        struct buf want = {0};
        npy_header(&weights[i], &want);
        put_values(&want, world, &weights[i]);
        expect(world, paths[i], &want);
        buf_free(&want);
        check_parts(world, world_find(world, paths[i]));
    }
    world_free(world);
}
END_TEST

/* ---- envelopes
 * ---------------------------------------------------------------------------------------------- */

enum { HEADER = 4096, CHUNK = 30000, PAYLOAD = WORLD_BYTES - HEADER, CHUNKS = (PAYLOAD + CHUNK - 1) / CHUNK };
static uint8_t digests[CHUNKS][32];
static struct envelope envelope;

static struct world *world_enveloped(void) {
    struct world *world = world_of_tensors();
    for (uint64_t i = 0; i < CHUNKS; i++) {
        uint64_t len = i + 1 < CHUNKS ? CHUNK : PAYLOAD % CHUNK;
        ck_assert_int_eq(
            hash_bytes(HASH_SHA256, world->bytes + HEADER + i * CHUNK, len, digests[i], NULL), 0);
    }
    envelope = (struct envelope){.header = world->bytes,
        .version = 1,
        .header_bytes = HEADER,
        .chunk_bytes = CHUNK,
        .payload_bytes = PAYLOAD,
        .chunk_count = CHUNKS,
        .full_chunks = CHUNKS - 1,
        .tail_bytes = PAYLOAD % CHUNK,
        .updates = UINT64_MAX};
    envelope.manifest[0] = 0xfe;
    world->catalog.envelope = &envelope;
    world->catalog.units = (struct unit_table){
        .count = CHUNKS, .base = HEADER, .total = PAYLOAD, .chunk = CHUNK, .digests = digests};
    world->part.base = HEADER + 1000;
    return world;
}

START_TEST(envelopes_show_header_chunks_and_sums) {
    struct world *world = world_enveloped();
    world_build(world);
    struct buf want = {0}, sums = {0};
    buf_put(&want, world->bytes, HEADER);
    expect(world, "envelope/header.bin", &want);
    buf_clear(&want);
    buf_put(&want, world->bytes + HEADER, PAYLOAD);
    expect(world, "envelope/payload.bin", &want);
    for (unsigned i = 0; i < CHUNKS; i++) {
        char path[64];
        snprintf(path, sizeof path, "envelope/chunks/%08u.bin", i);
        buf_clear(&want);
        buf_put(&want, world->bytes + HEADER + i * CHUNK, i + 1 < CHUNKS ? CHUNK : PAYLOAD % CHUNK);
        expect(world, path, &want);
        for (unsigned j = 0; j < 32; j++)
            buf_printf(&sums, "%02x", digests[i][j]);
        buf_printf(&sums, "  chunks/%08u.bin\n", i);
    }
    expect(world, "envelope/SHA256SUMS", &sums);
    static const char *const absent[] = {"0.bin", "000000000.bin", "00000007.bin", "+0000001.bin",
        "00000000.npy", ".bin", "18446744073709551616.bin", "0000000x.bin"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        char path[64];
        snprintf(path, sizeof path, "envelope/chunks/%s", absent[i]);
        ck_assert_msg(!world_find(world, path), "%s", path);
    }
    struct buf got = world_cat(world, "envelope/envelope.json");
    ck_assert_ptr_nonnull(strstr(got.bytes, "\"updates\":\t18446744073709551615"));
    ck_assert_ptr_nonnull(strstr(got.bytes, "\"manifest_sha256\":\t\"fe00"));
    ck_assert_uint_eq(world_stat(world, "envelope/chunks").size, CHUNKS);
    buf_free(&got);
    buf_free(&want);
    buf_free(&sums);
    world_free(world);
}
END_TEST

START_TEST(sums_grow_with_the_digits_of_chunk_numbers) {
    struct envelope many = {.chunk_count = 2000000000};
    struct catalog catalog = {.envelope = &many};
    struct rows rows = rows_sums(&catalog);
    static const struct {
        uint64_t row, start;
    } cases[] = {{0, 0}, {1, 86}, {100000000, 8600000000}, {100000001, 8600000087},
        {1000000000, UINT64_C(86000000000) + 900000000},
        {1000000001, UINT64_C(86000000000) + 900000000 + 88}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_uint_eq(rows_start(&rows, cases[i].row), cases[i].start);
        ck_assert_uint_eq(rows_find(&rows, cases[i].start), cases[i].row);
        ck_assert_uint_eq(rows_find(&rows, cases[i].start + 85), cases[i].row);
        ck_assert(!i || rows_find(&rows, cases[i].start - 1) == cases[i].row - 1);
    }
}
END_TEST

/* ---- damage
 * -------------------------------------------------------------------------------------------------- */

START_TEST(a_damaged_document_gives_the_guards_error) {
    struct world *world = world_new();
    struct document documents[] = {
        {.path = "config.json", .from = {100, 300}}, {.path = "gone.json", .from = {100, 0}}};
    world->catalog.documents = documents;
    world->catalog.document_count = 2;
    world_unit(world, "config section", 100, 300, true);
    world_build(world);
    ck_assert_uint_eq(world_stat(world, "config.json").size, 300);
    ck_assert_uint_eq(world_stat(world, "gone.json").size, 1);
    struct ckpt_err err = world_fault(world, "config.json");
    ck_assert_int_eq(err.code, CKPT_E_CORRUPT);
    ck_assert_str_eq(err.words, "section payload checksum mismatch");
    ck_assert_int_eq(world_fault(world, "gone.json").code, CKPT_E_CORRUPT);
    world_free(world);
}
END_TEST

START_TEST(a_damaged_group_leaves_the_rest_readable) {
    struct world *world = world_of_tensors();
    world->catalog.groups[GROUP_STATE] =
        (struct group){.present = true, .damaged = true, .index = {192100, 100}};
    world_unit(world, "weights section", 1000, 191000, false);
    world_unit(world, "state section", 192000, 2000, true);
    world_build(world);
    ck_assert_uint_eq(world_stat(world, "state").size, 0);
    ck_assert_str_eq(world_fault(world, "tensors.json").words, "section payload checksum mismatch");
    struct buf got = world_cat(world, "tensors/q4.npy");
    buf_free(&got);
    world_free(world);
}
END_TEST

START_TEST(what_was_derived_from_damage_is_not_served) {
    struct world *world = world_enveloped();
    world->catalog.head = (struct range){HEADER, 100};
    world->catalog.groups[GROUP_TENSORS].index = (struct range){HEADER + 500, 400};
    world->catalog.groups[GROUP_STATE].index = (struct range){HEADER + 2 * CHUNK, 400};
    struct blob blobs[] = {{.path = "a.bin", .at = {HEADER + 3 * CHUNK, 10}},
        {.path = "b.bin", .at = {HEADER + 3 * CHUNK, 10}, .from = {HEADER + 2 * CHUNK, 1}}};
    struct document document = {
        .path = "c.json", .json = "{}", .json_len = 2, .from = {HEADER + 2 * CHUNK, 1}};
    world->catalog.blobs = blobs;
    world->catalog.blob_count = 2;
    world->catalog.documents = &document;
    world->catalog.document_count = 1;
    world->parsed[0] = world->catalog.head;
    world->parsed[1] = world->catalog.groups[GROUP_TENSORS].index;
    world->parsed[2] = world->catalog.groups[GROUP_STATE].index;
    digests[_i ? 2 : 0][0] ^= 1; /* all data that is read below lies in other chunks */
    world_build(world);
    static const char *const of_head[] = {
        "tensors/f8.npy", "raw/tensors/f8.bin", "a.bin", "raw/tensors/empty.bin"};
    static const char *const of_index[] = {"state/s%2F1.npy", "b.bin", "c.json", "export/state.safetensors"};
    static const char *const exempt[] = {"checkpoint.json", "tensors.json", "envelope/envelope.json",
        "envelope/SHA256SUMS", "envelope/header.bin", "envelope/chunks/00000003.bin", "verify.json"};
    for (unsigned i = 0; i < 4; i++) {
        struct buf got = {0};
        /* Nobody reads an empty file: it fails when it is opened. */
        int rc = world_read(world, world_find(world, of_head[i]), &got, NULL);
        ck_assert_msg(rc == (_i == 0 ? CKPT_E_MISMATCH : 0), "%s: %d", of_head[i], rc);
        buf_free(&got);
        ck_assert_int_eq(world_fault(world, of_index[i]).code, CKPT_E_MISMATCH);
    }
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++) {
        struct buf got = world_cat(world, exempt[i]);
        buf_free(&got);
    }
    world_free(world);
}
END_TEST

/* ---- verify.json
 * --------------------------------------------------------------------------------------------- */

static cJSON *verify_json(struct world *world) {
    struct buf got = world_cat(world, "verify.json");
    cJSON *json = cJSON_Parse(got.bytes);
    ck_assert_ptr_nonnull(json);
    ck_assert_int_eq(got.bytes[got.len - 1], '\n');
    buf_free(&got);
    return json;
}

static const char *text_of(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItem(object, name);
    ck_assert_msg(item, "no %s", name);
    return cJSON_IsString(item) ? item->valuestring : "(no text)";
}

static double number_of(const cJSON *object, const char *name) {
    ck_assert_msg(cJSON_IsNumber(cJSON_GetObjectItem(object, name)), "no number %s", name);
    return cJSON_GetObjectItem(object, name)->valuedouble;
}

START_TEST(verify_json_tells_what_was_found) {
    struct world *world = world_of_tensors();
    world_unit(world, "weights section", 1000, 500, false);
    world_unit(world, "state section", 192000, 2000, true);
    world_build(world);
    ck_assert(world_stat(world, "verify.json").dynamic);
    cJSON *json = verify_json(world);
    ck_assert_str_eq(text_of(json, "mode"), "lazy");
    ck_assert_str_eq(text_of(json, "strength"), "fnv1a64");
    ck_assert_str_eq(text_of(json, "protects_against"), "accidents");
    ck_assert(number_of(json, "units") == 2 && number_of(json, "verified") == 0 &&
              number_of(json, "bytes") == 2500);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "faults")), 0);
    cJSON_Delete(json);
    struct tree_file *before;
    ck_assert_int_eq(tree_open(world->tree, world_find(world, "verify.json"), &before, NULL, NULL), 0);
    uint64_t size = tree_file_size(before);
    world_fault(world, "raw/state/s%2F1.bin");
    ck_assert_uint_eq(tree_file_size(before), size); /* a snapshot */
    tree_close(before);
    json = verify_json(world);
    ck_assert(number_of(json, "corrupt") == 1 && number_of(json, "faults_left_out") == 0);
    const cJSON *fault = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "faults"), 0);
    ck_assert_str_eq(text_of(fault, "unit"), "state section");
    ck_assert(number_of(fault, "index") == 1 && number_of(fault, "offset") == 192000 &&
              number_of(fault, "size") == 2000);
    ck_assert_uint_eq(strlen(text_of(fault, "expected")), 8 + 16);
    ck_assert(!strncmp(text_of(fault, "found"), "fnv1a64:", 8));
    ck_assert_str_ne(text_of(fault, "found"), text_of(fault, "expected"));
    const cJSON *list = cJSON_GetObjectItem(json, "unit_list");
    ck_assert_str_eq(text_of(cJSON_GetArrayItem(list, 0), "state"), "unknown");
    ck_assert_str_eq(text_of(cJSON_GetArrayItem(list, 1), "state"), "corrupt");
    cJSON_Delete(json);
    world_free(world);
}
END_TEST

START_TEST(verify_json_of_envelopes_and_of_nothing) {
    struct world *world = world_enveloped();
    digests[2][0] ^= 1;
    world_build(world);
    ck_assert_int_eq(world_fault(world, "envelope/payload.bin").code, CKPT_E_MISMATCH);
    cJSON *json = verify_json(world);
    ck_assert_str_eq(text_of(json, "strength"), "sha256");
    ck_assert_uint_eq(strlen(text_of(json, "manifest_sha256")), 64);
    ck_assert_str_eq(text_of(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "faults"), 0), "unit"), "chunk 2");
    cJSON_Delete(json);
    world_free(world);
    world = world_of_tensors();
    world_build_in(world, CKPT_VERIFY_OFF);
    json = verify_json(world);
    ck_assert_str_eq(text_of(json, "mode"), "off");
    ck_assert_str_eq(text_of(json, "strength"), "none");
    cJSON_Delete(json);
    world_free(world);
}
END_TEST

/* ---- threads
 * ------------------------------------------------------------------------------------------------- */

static void *read_lazily_made(void *arg) {
    struct world *world = arg;
    static const char *const paths[] = {
        "tensors.json", "export/model.safetensors", "export/state.safetensors"};
    uintptr_t bytes = 0;
    for (unsigned i = 0; i < 3; i++) {
        struct ckpt_stat at;
        struct buf got = {0};
        struct ckpt_stat dir = {.ino = 1};
        const char *name = strchr(paths[i], '/') ? strchr(paths[i], '/') + 1 : paths[i];
        if ((name != paths[i] && tree_lookup(world->tree, 1, "export", &dir, NULL)) ||
            tree_lookup(world->tree, dir.ino, name, &at, NULL) || world_read(world, at.ino, &got, NULL))
            return NULL;
        bytes += got.len;
        buf_free(&got);
    }
    return (void *)bytes;
}

START_TEST(what_is_made_once_is_made_by_one_thread) {
    struct world *world = world_of_tensors();
    world_build(world);
    pthread_t threads[8];
    void *bytes[8];
    for (unsigned i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_lazily_made, world), 0);
    for (unsigned i = 0; i < 8; i++)
        pthread_join(threads[i], &bytes[i]);
    for (unsigned i = 0; i < 8; i++)
        ck_assert(bytes[i] && bytes[i] == bytes[0]);
    world_free(world);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tree_read");
    TCase *tcase = tcase_create("tree_read");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, tensors_are_stored_bytes_or_exact_values);
    tcase_add_test(tcase, exports_are_ordered_padded_and_complete);
    tcase_add_test(tcase, an_export_may_be_empty);
    tcase_add_test(tcase, the_index_has_a_line_a_tensor);
    tcase_add_test(tcase, the_index_names_shards_and_missing_views);
    tcase_add_test(tcase, without_tensors_the_index_is_still_json);
    tcase_add_test(tcase, documents_and_blobs);
    tcase_add_loop_test(tcase, any_part_of_any_file, 0, 2);
    tcase_add_test(tcase, large_tensors_are_converted_batch_by_batch);
    tcase_add_test(tcase, envelopes_show_header_chunks_and_sums);
    tcase_add_test(tcase, sums_grow_with_the_digits_of_chunk_numbers);
    tcase_add_test(tcase, a_damaged_document_gives_the_guards_error);
    tcase_add_test(tcase, a_damaged_group_leaves_the_rest_readable);
    tcase_add_loop_test(tcase, what_was_derived_from_damage_is_not_served, 0, 2);
    tcase_add_test(tcase, verify_json_tells_what_was_found);
    tcase_add_test(tcase, verify_json_of_envelopes_and_of_nothing);
    tcase_add_test(tcase, what_is_made_once_is_made_by_one_thread);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
