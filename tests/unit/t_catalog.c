/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/catalog.h"
#include "unit.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SHAPE(...)                                                                                           \
    sizeof((uint64_t[]){__VA_ARGS__}) / 8, {                                                                 \
        __VA_ARGS__                                                                                          \
    }

static const uint64_t two32 = 4294967296u;

/* elements and bytes: what tensor_check must tell; UNTOUCHED where it must not. */
#define UNTOUCHED 77
struct check_case {
    enum tensor_fault fault;
    uint8_t dtype, encoding, block;
    uint64_t size, elements, bytes;
    uint32_t rank;
    uint64_t shape[8];
};

static void run_check(const struct check_case *c, size_t i) {
    uint64_t bytes = UNTOUCHED;
    struct tensor tensor = {
        .dtype = c->dtype,
        .encoding = c->encoding,
        .block = c->block,
        .size = c->size,
        .elements = UNTOUCHED,
        .rank = c->rank,
        .shape = c->rank ? c->shape : NULL,
    };
    enum tensor_fault fault = tensor_check(&tensor, &bytes);
    ck_assert_msg(fault == c->fault, "case %zu: fault %d, wanted %d", i, fault, c->fault);
    ck_assert_msg(
        tensor.elements == c->elements, "case %zu: %llu elements", i, (unsigned long long)tensor.elements);
    ck_assert_msg(bytes == c->bytes, "case %zu: %llu bytes", i, (unsigned long long)bytes);
}

START_TEST(dense_tensors) {
    enum { D = ENCODING_DENSE };
    const struct check_case cases[] = {
        {TENSOR_OK, DTYPE_F32, D, 0, 4, 1, 4, 0, {0}},
        {TENSOR_OK, DTYPE_F32, D, 0, 24, 6, 24, SHAPE(2, 3)},
        {TENSOR_OK, DTYPE_C128, D, 0, 32, 2, 32, SHAPE(2)},
        {TENSOR_OK, DTYPE_F32, D, 0, 0, 0, 0, SHAPE(0)},
        {TENSOR_OK, DTYPE_F32, D, 0, 0, 0, 0, SHAPE(3, 0, 5)},
        {TENSOR_OK, DTYPE_F64, D, 0, 0, 0, 0, SHAPE(0, UINT64_MAX, UINT64_MAX)},
        {TENSOR_OK, DTYPE_U8, D, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX, SHAPE(UINT64_MAX)},
        {TENSOR_ELEMENTS, DTYPE_U8, D, 0, 0, UNTOUCHED, UNTOUCHED, SHAPE(two32, two32)},
        {TENSOR_ELEMENTS, DTYPE_F32, D, 0, 0, UNTOUCHED, UNTOUCHED, SHAPE((uint64_t)1 << 63, 4, 0)},
        {TENSOR_ELEMENTS, DTYPE_U8, D, 0, 0, UNTOUCHED, UNTOUCHED,
            SHAPE(3, 1024, 1024, 1024, 1024, 1024, 1024, 1024)},
        {TENSOR_DENSE_OVERFLOW, DTYPE_F32, D, 0, 0, (uint64_t)1 << 62, UNTOUCHED, SHAPE((uint64_t)1 << 62)},
        {TENSOR_DENSE_OVERFLOW, DTYPE_F64, D, 0, 0, (uint64_t)1 << 61, UNTOUCHED, SHAPE((uint64_t)1 << 61)},
        {TENSOR_DENSE_OVERFLOW, DTYPE_C128, D, 0, 0, (uint64_t)1 << 60, UNTOUCHED, SHAPE((uint64_t)1 << 60)},
        {TENSOR_SIZE, DTYPE_F32, D, 0, 0, (uint64_t)1 << 61, (uint64_t)1 << 63, SHAPE((uint64_t)1 << 61)},
        {TENSOR_DENSE_OVERFLOW, DTYPE_F32, D, 32, 0, (uint64_t)1 << 62, UNTOUCHED, SHAPE((uint64_t)1 << 62)},
        {TENSOR_BLOCK, DTYPE_F32, D, 32, 7, 6, UNTOUCHED, SHAPE(2, 3)},
        {TENSOR_BLOCK, DTYPE_F32, D, 1, 24, 6, UNTOUCHED, SHAPE(2, 3)},
        {TENSOR_SIZE, DTYPE_F32, D, 0, 11, 3, 12, SHAPE(3)},
        {TENSOR_SIZE, DTYPE_F32, D, 0, 0, 1, 4, 0, {0}},
        {TENSOR_SIZE, DTYPE_F32, D, 0, 1, 0, 0, SHAPE(0)},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        run_check(&cases[i], i);
}
END_TEST

START_TEST(tensors_of_types_below_a_byte) {
    enum { D = ENCODING_DENSE };
    const struct check_case cases[] = {
        {TENSOR_OK, DTYPE_F4, D, 0, 1, 2, 1, SHAPE(2)},
        {TENSOR_OK, DTYPE_F6_E2M3, D, 0, 3, 4, 3, SHAPE(4)},
        {TENSOR_OK, DTYPE_F6_E3M2, D, 0, 0, 0, 0, SHAPE(0)},
        {TENSOR_PARTIAL_BYTE, DTYPE_F4, D, 0, 2, 3, UNTOUCHED, SHAPE(3)},
        {TENSOR_PARTIAL_BYTE, DTYPE_F4, D, 0, 1, 1, UNTOUCHED, 0, {0}},
        {TENSOR_PARTIAL_BYTE, DTYPE_F6_E2M3, D, 0, 1, 2, UNTOUCHED, SHAPE(2)},
        {TENSOR_SIZE, DTYPE_F6_E2M3, D, 0, 4, 4, 3, SHAPE(4)},
        {TENSOR_DENSE_OVERFLOW, DTYPE_F4, D, 0, 0, (uint64_t)1 << 62, UNTOUCHED, SHAPE((uint64_t)1 << 62)},
        {TENSOR_DENSE_OVERFLOW, DTYPE_F6_E2M3, D, 0, 0, (uint64_t)1 << 62, UNTOUCHED,
            SHAPE((uint64_t)1 << 62)},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        run_check(&cases[i], i);
}
END_TEST

START_TEST(quantized_tensors) {
    enum { Q4 = ENCODING_Q4, Q8 = ENCODING_Q8 };
    const uint64_t most = UINT64_MAX, blocks = (uint64_t)1 << 59;
    const struct check_case cases[] = {
        {TENSOR_OK, DTYPE_F32, Q4, 32, 20, 1, 20, SHAPE(1)},
        {TENSOR_OK, DTYPE_F32, Q4, 32, 20, 1, 20, 0, {0}},
        {TENSOR_OK, DTYPE_F32, Q4, 32, 20, 32, 20, SHAPE(32)},
        {TENSOR_OK, DTYPE_F32, Q4, 32, 40, 33, 40, SHAPE(33)},
        {TENSOR_OK, DTYPE_F32, Q8, 32, 36, 32, 36, SHAPE(4, 8)},
        {TENSOR_OK, DTYPE_F32, Q8, 32, 72, 33, 72, SHAPE(33)},
        {TENSOR_SIZE, DTYPE_F32, Q4, 32, 20, 33, 40, SHAPE(33)},
        {TENSOR_SIZE, DTYPE_F32, Q8, 32, 20, 32, 36, SHAPE(32)},
        {TENSOR_SIZE, DTYPE_F32, Q4, 32, 20, most, 20 * blocks, SHAPE(most)},
        {TENSOR_QUANT_OVERFLOW, DTYPE_F32, Q8, 32, 36, most, UNTOUCHED, SHAPE(most)},
        {TENSOR_ELEMENTS, DTYPE_F32, Q4, 32, 20, UNTOUCHED, UNTOUCHED, SHAPE(two32, two32)},
        {TENSOR_QUANT_LAYOUT, DTYPE_F16, Q4, 32, 20, 1, UNTOUCHED, SHAPE(1)},
        {TENSOR_QUANT_LAYOUT, DTYPE_U8, Q8, 32, 36, 1, UNTOUCHED, SHAPE(1)},
        {TENSOR_QUANT_LAYOUT, DTYPE_F32, Q4, 0, 20, 1, UNTOUCHED, SHAPE(1)},
        {TENSOR_QUANT_LAYOUT, DTYPE_F32, Q4, 16, 20, 1, UNTOUCHED, SHAPE(1)},
        {TENSOR_QUANT_LAYOUT, DTYPE_F32, Q8, 64, 36, 1, UNTOUCHED, SHAPE(1)},
        {TENSOR_QUANT_LAYOUT, DTYPE_F32, Q4, 32, 0, 0, UNTOUCHED, SHAPE(0)},
        {TENSOR_QUANT_LAYOUT, DTYPE_F16, Q8, 32, 0, most, UNTOUCHED, SHAPE(most)},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        run_check(&cases[i], i);
}
END_TEST

START_TEST(overlaps_are_found) {
    static const struct {
        uint64_t count;
        struct range ranges[5];
        bool overlap;
        uint64_t a, b;
    } cases[] = {
        {0, {{0, 0}}, false, 77, 77},
        {1, {{5, 10}}, false, 77, 77},
        {2, {{0, 10}, {10, 5}}, false, 77, 77},
        {2, {{10, 5}, {0, 10}}, false, 77, 77},
        {2, {{0, 10}, {9, 1}}, true, 0, 1},
        {2, {{9, 1}, {0, 10}}, true, 1, 0},
        {2, {{3, 4}, {3, 4}}, true, 0, 1},
        {2, {{3, 1}, {3, 9}}, true, 0, 1},
        {3, {{0, 100}, {10, 1}, {50, 1}}, true, 0, 1},
        {3, {{20, 5}, {0, 5}, {22, 1}}, true, 0, 2},
        {4, {{0, 4}, {8, 4}, {11, 4}, {3, 1}}, true, 0, 3},
        {3, {{0, 4}, {2, 0}, {4, 4}}, false, 77, 77}, /* an empty one inside another */
        {3, {{0, 4}, {0, 0}, {0, 0}}, false, 77, 77},
        {2, {{UINT64_MAX, 1}, {UINT64_MAX - 1, 1}}, false, 77, 77},
        {2, {{UINT64_MAX, UINT64_MAX}, {UINT64_MAX - 1, UINT64_MAX}}, true, 1, 0},
        {2, {{0, UINT64_MAX}, {UINT64_MAX, 1}}, false, 77, 77},
        {2, {{0, UINT64_MAX}, {UINT64_MAX - 1, 1}}, true, 0, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t a = 77, b = 77;
        int rc = 1;
        bool overlap = ranges_overlap(cases[i].ranges, cases[i].count, &a, &b, &rc);
        ck_assert_msg(overlap == cases[i].overlap && rc == 0, "case %zu", i);
        ck_assert_msg(a == cases[i].a && b == cases[i].b, "case %zu", i);
    }
}
END_TEST

START_TEST(many_ranges_take_no_square_time) {
    uint64_t count = 1000000, a, b;
    int rc;
    struct range *ranges = calloc(count, sizeof *ranges);
    for (uint64_t i = 0; i < count; i++)
        ranges[i * 7919 % count] =
            (struct range){.off = 8 * i, .len = 8}; /* shuffled: 7919 is coprime to count */
    ck_assert(!ranges_overlap(ranges, count, &a, &b, &rc));
    ranges[7919].len = 9; /* the second one by place, now a byte into the third */
    ck_assert(ranges_overlap(ranges, count, &a, &b, &rc));
    ck_assert_uint_eq(a, 7919);
    ck_assert_uint_eq(b, 15838);
    ck_assert(!ranges_overlap(ranges, UINT64_MAX, &a, &b, &rc));
    ck_assert_int_eq(rc, CKPT_E_NOMEM);
    free(ranges);
}
END_TEST

START_TEST(units_of_a_list_and_of_chunks) {
    const struct unit list[2] = {{.at = {64, 5}, .kind = DIGEST_FNV1A64, .label = "config section"},
        {.at = {100, 7}, .kind = DIGEST_FNV1A64, .label = "weights section", .index = 3}};
    struct unit_table table = {.list = list, .count = 2};
    ck_assert_str_eq(unit_get(&table, 1).label, "weights section");
    ck_assert_uint_eq(unit_get(&table, 1).index, 3);
    const uint8_t digests[3][32] = {{1}, {2}, {3, [31] = 9}};
    table = (struct unit_table){.count = 3, .base = 4096, .total = 25, .chunk = 10, .digests = digests};
    struct unit first = unit_get(&table, 0), last = unit_get(&table, 2);
    ck_assert(first.at.off == 4096 && first.at.len == 10);
    ck_assert(last.at.off == 4116 && last.at.len == 5);
    ck_assert(last.index == 2 && last.kind == DIGEST_SHA256 && !last.label);
    ck_assert(!memcmp(last.digest, digests[2], 32));
    table.total = 30;
    ck_assert_uint_eq(unit_get(&table, 2).at.len, 10);
}
END_TEST

START_TEST(tensors_are_placed_by_their_part) {
    struct catalog catalog = {.format = "safetensors-index", .part_count = 2};
    catalog.parts = arena_alloc(&catalog.arena, 2, sizeof *catalog.parts);
    ck_assert_ptr_nonnull(catalog.parts);
    catalog.parts[1].base = 1000;
    const struct tensor tensor = {.offset = 24, .size = 8, .part = 1};
    struct range at = tensor_range(&catalog, &tensor);
    ck_assert(at.off == 1024 && at.len == 8);
    catalog_free(&catalog);
    ck_assert_ptr_null(catalog.parts);
    catalog_free(&catalog);
}
END_TEST

START_TEST(names_and_types) {
    ck_assert_str_eq(encoding_names[ENCODING_DENSE], "dense");
    ck_assert_str_eq(encoding_names[ENCODING_Q4], "q4");
    ck_assert_str_eq(encoding_names[ENCODING_Q8], "q8");
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const char *name = dtype_table[i].name;
        ck_assert_int_eq(dtype_find(name, strlen(name)), i);
        ck_assert_uint_gt(dtype_table[i].bits, 0);
        ck_assert(!dtype_table[i].widens || !dtype_table[i].descr);
    }
    ck_assert_int_eq(dtype_find("f32", 3), -1);
    ck_assert_int_eq(dtype_find("F3", 2), -1);
    ck_assert_int_eq(dtype_find("F32\0", 4), -1);
    ck_assert_int_eq(dtype_find("", 0), -1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("catalog");
    TCase *tcase = tcase_create("catalog");
    tcase_add_test(tcase, dense_tensors);
    tcase_add_test(tcase, tensors_of_types_below_a_byte);
    tcase_add_test(tcase, quantized_tensors);
    tcase_add_test(tcase, overlaps_are_found);
    tcase_add_test(tcase, many_ranges_take_no_square_time);
    tcase_add_test(tcase, units_of_a_list_and_of_chunks);
    tcase_add_test(tcase, tensors_are_placed_by_their_part);
    tcase_add_test(tcase, names_and_types);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
