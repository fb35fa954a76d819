/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out, at each allocation in turn: for that one alone, and for all from there on. Every call
 * says so, or does without; it never says something else of the file, and never comes back with half a
 * result.
 */
#include "folder.h"

#include <cjson/cJSON.h>
#include <ckptfs.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

/* ---- the allocator (--wrap, Makefile.am) ----------------------------------------------------------------
 */

static atomic_long calls, fails_at; /* fails_at 0: never */
static bool from_then_on;

static bool fails(void) {
    long at = atomic_load(&fails_at);
    long call = at ? atomic_fetch_add(&calls, 1) + 1 : 0;
    if (!at || call < at || (call > at && !from_then_on))
        return false;
    errno = ENOMEM;
    return true;
}

/* Checks need memory, too. */
static void there_is_memory(void) {
    atomic_store(&fails_at, 0);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_reallocarray(void *memory, size_t count, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_reallocarray(void *memory, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    return fails() ? NULL : __real_realloc(memory, size);
}

void *__wrap_reallocarray(void *memory, size_t count, size_t size) {
    return fails() ? NULL : __real_reallocarray(memory, count, size);
}

char *__wrap_strdup(const char *text) {
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t len) {
    return fails() ? NULL : __real_strndup(text, len);
}

/* ---- each allocation in turn ----------------------------------------------------------------------------
 */

typedef int call_made(struct ckpt_err *err);

static void fail_each(call_made *call, bool all) {
    struct ckpt_err err = {0};
    long at = 0;
    from_then_on = all;
    do {
        at++;
        atomic_store(&calls, 0);
        atomic_store(&fails_at, at);
        int rc = call(&err);
        there_is_memory();
        ck_assert_msg(rc == 0 || (rc == CKPT_E_NOMEM && err.code == rc), "allocation %ld%s: %d (%d) %s", at,
            all ? " and all after it" : "", rc, err.code, err.msg);
        ck_assert_msg(rc == 0 || strstr(err.msg, "memory") != NULL, "allocation %ld: %s", at, err.msg);
    } while (atomic_load(&calls) >= at);
    ck_assert_int_gt(at, 10); /* or nothing was wrapped */
}

static void fail_at_each(call_made *call) {
    fail_each(call, false);
    fail_each(call, true);
}

/* ---- the files ------------------------------------------------------------------------------------------
 */

/* Texts with escapes, which are decoded; numbers, which are copied; and more than one of all there is. */
static const char description[] =
    "{\"format\": \"oam\", \"config\": {\"architecture\": \"\\u0041b\", \"config_version\": 1, \"flags\": 0, "
    "\"d_model\": 2, \"n_layers\": 1, \"d_vocab\": 3, \"weight_dtype\": \"F32\", \"state_dtype\": \"F\\u00332\", "
    "\"compute_dtype\": \"F32\", \"arch_config\": {\"hex\": \"7b226e6\\u0031223a22\\u0035c7530303631227d\"}}, "
    "\"weights\": [{\"name\": \"b\\u0061\", \"dtype\": \"F32\", \"shape\": [2], \"encoding\": \"dense\", "
    "\"block_size\": 0, \"data\": {\"hex\": \"0000803f00000040\"}}, {\"name\": \"a\\n\", \"dtype\": \"U8\", "
    "\"shape\": [1, 3], \"encoding\": \"dense\", \"block_size\": 0, \"data\": {\"hex\": \"010203\"}}], "
    "\"state\": [{\"name\": \"s\", \"dtype\": \"U8\", \"shape\": [1], \"encoding\": \"dense\", \"block_size\": 0, "
    "\"data\": {\"hex\": \"07\"}}], \"optimizer\": {\"kind\": \"S\\u0047D\", \"learning_rate\": 0.1, \"beta1\": 0, "
    "\"beta2\": 0, \"epsilon\": 0, \"weight_decay\": 0, \"step\": 1, \"first_moment\": {\"hex\": \"0000803f\"}, "
    "\"second_moment\": {\"hex\": \"0000803f\"}}, \"progress\": {\"phase\": 0, \"step\": 5, \"bytes_seen\": 6, "
    "\"env_steps\": 7, \"learning_rate\": 0.25, \"best_metric\": 1.0, \"lower_is_better\": true, "
    "\"metric_name\": \"lo\\u0073s\"}}";

/* Names and metadata with escapes. */
static const char header[] =
    "{\"__metadata__\":{\"k\\u0065y\":\"v\\u0061lue\",\"f\\u006frmat\":\"pt\"},"
    "\"w\\u0031\":{\"dtyp\\u0065\":\"F\\u00332\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":[\"\\u0061\"]}}";

static const char index_text[] = "{\"m\\u0065tadata\": {\"k\\u0065y\": \"v\\u0061lue\", \"number\": [1]}, "
                                 "\"weight_m\\u0061p\": {\"w\\u0031\": \"m\\u002esafetensors\"}}";

static const char contract[] =
    "{\"schem\\u0061\": \"\\u0061\", \"learner\": \"b\", \"data\": \"c\", \"seed\": \"\\u0064\", \"more\": \"\\u0064\", "
    "\"payload_bytes\": 4, \"chunk_bytes\": 4, \"updates_per_invocation\": 1}";

static void store_safetensors(const char *path, const char *text) {
    struct buf bytes = {0};
    uint64_t len = strlen(text);
    for (int i = 0; i < 8; i++)
        buf_putc(&bytes, (char)(len >> 8 * i));
    buf_puts(&bytes, text);
    buf_put(&bytes, "\0\0\200\77", 4);
    file_store(path, bytes.bytes, bytes.len);
    buf_free(&bytes);
}

static void store(const char *name, const char *text) {
    file_store(folder_file(name), text, strlen(text));
}

static void good(int rc, const struct ckpt_err *err) {
    ck_assert_msg(rc == 0, "%s", err->msg);
}

/* The parts of an .oam as files, without those that repeat others. */
static void extract_tree(void) {
    struct ckpt_err err = {0};
    struct ckpt *ckpt;
    good(ckpt_open(folder_file("m.oam"), NULL, &ckpt, &err), &err);
    good(ckpt_extract(ckpt, folder_file("tree"), NULL, NULL, NULL, &err), &err);
    ckpt_close(ckpt);
    ck_assert_int_eq(unlink(folder_file("tree/raw/arch_config.bin")), 0);
}

static void setup(void) {
    const struct ckpt_convert drop = {.drop = true};
    struct ckpt_err err = {0};
    folder_make();
    store("spec.json", description);
    store_safetensors(folder_file("m.safetensors"), header);
    good(ckpt_pack(folder_file("spec.json"), folder_file("m.oam"), NULL, &err), &err);
    good(ckpt_convert(folder_file("m.oam"), folder_file("of.safetensors"), &drop, NULL, &err), &err);
    extract_tree();
    store("contract.json", contract);
    store("s.safetensors.index.json", index_text);
    cJSON_Hooks hooks = {.malloc_fn = __wrap_malloc, .free_fn = free};
    cJSON_InitHooks(&hooks);
}

/* ---- the calls ------------------------------------------------------------------------------------------
 */

static int pack_description(struct ckpt_err *err) {
    return ckpt_pack(folder_file("spec.json"), folder_file("o.oam"), NULL, err);
}

START_TEST(packing_a_description) {
    fail_at_each(pack_description);
}
END_TEST

static int pack_tree(struct ckpt_err *err) {
    return ckpt_pack(folder_file("tree"), folder_file("o.oam"), NULL, err);
}

START_TEST(packing_a_directory) {
    fail_at_each(pack_tree);
}
END_TEST

static int quantize(struct ckpt_err *err) {
    return ckpt_quantize(folder_file("dense.oam"), CKPT_Q8, folder_file("o.oam"), NULL, err);
}

START_TEST(quantizing) {
    char path[512];
    struct buf bytes = file_load(unit_golden(path, sizeof path, "oam/quantized/small_dense.oam"));
    file_store(folder_file("dense.oam"), bytes.bytes, bytes.len);
    buf_free(&bytes);
    fail_at_each(quantize);
}
END_TEST

static int payload = -1;

static int seal(struct ckpt_err *err) {
    char path[512];
    strcpy(path, folder_file("contract.json"));
    const struct ckpt_seal how = {.contract = path, .updates = 1, .invocations = 1};
    lseek(payload, 0, SEEK_SET);
    return ckpt_seal(payload, &how, folder_file("o.ckpt"), NULL, err);
}

START_TEST(sealing) {
    store("payload", "1234");
    payload = open(folder_file("payload"), O_RDONLY);
    ck_assert_int_ge(payload, 0);
    fail_at_each(seal);
    close(payload);
}
END_TEST

static int convert(const char *from, const char *to, struct ckpt_err *err) {
    const struct ckpt_convert drop = {.drop = true};
    return ckpt_convert(folder_file(from), folder_file(to), &drop, NULL, err);
}

static int convert_oam(struct ckpt_err *err) {
    return convert("m.oam", "o.safetensors", err);
}

static int convert_safetensors(struct ckpt_err *err) {
    return convert("of.safetensors", "o.oam", err);
}

static int convert_alike(struct ckpt_err *err) {
    return convert("m.safetensors", "o.safetensors", err);
}

static int convert_set(struct ckpt_err *err) {
    return convert("s.safetensors.index.json", "o.safetensors", err);
}

/* What came of it is what comes of it with memory. */
static void converts_to_the_same(call_made *call, const char *name) {
    struct ckpt_err err = {0};
    good(call(&err), &err);
    struct buf before = file_load(folder_file(name));
    fail_at_each(call);
    struct buf after = file_load(folder_file(name));
    ck_assert_uint_eq(after.len, before.len);
    ck_assert_mem_eq(after.bytes, before.bytes, before.len);
    buf_free(&before);
    buf_free(&after);
}

START_TEST(converting) {
    converts_to_the_same(convert_oam, "o.safetensors");
    converts_to_the_same(convert_safetensors, "o.oam");
    converts_to_the_same(convert_alike, "o.safetensors");
    converts_to_the_same(convert_set, "o.safetensors");
}
END_TEST

static int verify(const char *name, struct ckpt_err *err) {
    struct ckpt_verdict verdict;
    int rc = ckpt_verify(folder_file(name), NULL, &verdict, err);
    there_is_memory();
    ck_assert_str_eq(verdict.line, rc ? "" : "ok");
    return rc;
}

static int verify_safetensors(struct ckpt_err *err) {
    return verify("m.safetensors", err);
}

static int verify_oam(struct ckpt_err *err) {
    return verify("m.oam", err);
}

START_TEST(verifying) {
    fail_at_each(verify_safetensors);
    fail_at_each(verify_oam);
}
END_TEST

static char *facts; /* with memory */

static int tell_facts(const char *name, struct ckpt_err *err) {
    struct ckpt *ckpt;
    char *text = NULL;
    int rc = ckpt_open(folder_file(name), NULL, &ckpt, err);
    if (rc)
        return rc;
    rc = ckpt_info_json(ckpt, &text, err);
    ckpt_close(ckpt);
    there_is_memory();
    if (!rc && facts)
        ck_assert_str_eq(text, facts);
    if (!rc && !facts)
        facts = text;
    else
        free(text);
    return rc;
}

static int facts_of_oam(struct ckpt_err *err) {
    return tell_facts("m.oam", err);
}

static int facts_of_safetensors(struct ckpt_err *err) {
    return tell_facts("m.safetensors", err);
}

static void facts_are_the_same(call_made *call) {
    struct ckpt_err err = {0};
    good(call(&err), &err);
    fail_at_each(call);
    free(facts);
    facts = NULL;
}

START_TEST(telling_facts) {
    facts_are_the_same(facts_of_oam);
    facts_are_the_same(facts_of_safetensors);
}
END_TEST

static uint64_t differences; /* with memory */

static int diff(const char *a, const char *b, struct ckpt_err *err) {
    struct ckpt *left, *right;
    uint64_t count = 0;
    int rc = ckpt_open(folder_file(a), NULL, &left, err);
    if (rc)
        return rc;
    rc = ckpt_open(folder_file(b), NULL, &right, err);
    if (!rc) {
        rc = ckpt_diff(left, right, NULL, NULL, NULL, &count, err);
        ckpt_close(right);
    }
    ckpt_close(left);
    there_is_memory();
    if (!rc && differences)
        ck_assert_uint_eq(count, differences);
    differences = rc ? differences : count;
    return rc;
}

static int diff_formats(struct ckpt_err *err) {
    return diff("m.oam", "of.safetensors", err);
}

static int diff_metadata(struct ckpt_err *err) {
    return diff("m.safetensors", "of.safetensors", err);
}

START_TEST(comparing) {
    fail_at_each(diff_formats);
    differences = 0;
    fail_at_each(diff_metadata);
}
END_TEST

/* A store that could not be loaded has the values that it had. */
static int load_store(struct ckpt_err *err) {
    const uint64_t shape[] = {1};
    const float before = 9;
    float value = 0;
    struct ckpt_store *store;
    struct ckpt_pair *metadata = NULL;
    size_t count = 0;
    uint64_t number = 0;
    int rc = ckpt_store_create(NULL, &store, err);
    if (rc)
        return rc;
    rc = ckpt_store_add(store, "w1", shape, 1, &number, err);
    const uint64_t added = !rc, held = ckpt_store_count(store);
    if (!rc)
        rc = ckpt_store_put(store, number, 0, &before, 1, err);
    if (!rc)
        rc = ckpt_store_load(store, folder_file("m.safetensors"), NULL, &metadata, &count, err);
    there_is_memory();
    ck_assert_uint_eq(held, added);
    ck_assert_uint_eq(count, rc ? 0 : 2);
    ck_assert(!added || ckpt_store_get(store, number, 0, &value, 1, NULL) == 0);
    ck_assert(!added || value == (rc ? before : 1.0f));
    free(metadata);
    ckpt_store_free(store);
    return rc;
}

START_TEST(loading_a_store) {
    fail_at_each(load_store);
}
END_TEST

static int save_store(struct ckpt_err *err) {
    const struct ckpt_pair pair = {"k", 1, "v", 1};
    struct ckpt_store *store;
    int rc = ckpt_store_create(NULL, &store, err);
    if (rc)
        return rc;
    rc = ckpt_store_add(store, "w1", NULL, 0, NULL, err);
    if (!rc)
        rc = ckpt_store_save(store, folder_file("store.safetensors"), &pair, 1, NULL, err);
    ckpt_store_free(store);
    return rc;
}

START_TEST(saving_a_store) {
    fail_at_each(save_store);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("memory");
    TCase *tcase = tcase_create("memory");
    tcase_add_unchecked_fixture(tcase, setup, folder_clear);
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, packing_a_description);
    tcase_add_test(tcase, packing_a_directory);
    tcase_add_test(tcase, quantizing);
    tcase_add_test(tcase, sealing);
    tcase_add_test(tcase, converting);
    tcase_add_test(tcase, verifying);
    tcase_add_test(tcase, telling_facts);
    tcase_add_test(tcase, comparing);
    tcase_add_test(tcase, loading_a_store);
    tcase_add_test(tcase, saving_a_store);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
