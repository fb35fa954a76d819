/* SPDX-License-Identifier: Apache-2.0 */
/* Digests against known answers, and every FNV-1a kernel that this CPU has against the plain loop. */
#include "config.h"

#include "base/text.h"
#include "hash/block.h"
#include "hash/cpu.h"
#include "hash/fnv1a.h"
#include "hash/fnv1a_kernel.h"
#include "hash/hash.h"
#include "unit.h"

#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define LENGTHS 9000 /* past two blocks of any kernel */
#define LARGE ((size_t)64 << 20)

static uint64_t plain(uint64_t h, const void *bytes, size_t len) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ at[i]) * FNV1A64_PRIME;
    return h;
}

static uint64_t random_state;

static uint64_t random64(void) { /* xorshift64* */
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static void seed(void) {
    random_state = UINT64_C(88172645463325252);
}

/* ---- kinds of data ------------------------------------------------------------------------------------- */

enum fill { FILL_RANDOM, FILL_ZEROS, FILL_ONES, FILL_CONSTANT, FILL_FLOATS, FILL_SPARSE, FILL_COUNT };

static void fill_floats(uint8_t *bytes, size_t len) { /* like weights: small, of both signs */
    for (size_t i = 0; i + 4 <= len; i += 4) {
        float value = (float)((double)random64() / 18446744073709551616.0 * 0.04 - 0.02);
        memcpy(bytes + i, &value, 4);
    }
}

static void fill(uint8_t *bytes, size_t len, enum fill kind) {
    memset(bytes, kind == FILL_ONES ? 0xff : kind == FILL_CONSTANT ? 0xa5 : 0, len);
    for (size_t i = 0; kind == FILL_RANDOM && i < len; i++)
        bytes[i] = (uint8_t)(random64() >> 56);
    for (size_t i = 0; kind == FILL_SPARSE && i < len; i += 1 + random64() % 100)
        bytes[i] = 0x80;
    if (kind == FILL_FLOATS)
        fill_floats(bytes, len);
}

/* ---- kernels --------------------------------------------------------------------------------------------
 */

static const char *const limits[] = {"portable", "avx2", "avx512"};
#define LIMITS (int)(sizeof limits / sizeof *limits)

/* The kernel that CKPTFS_CPU=limits[i] chooses on this CPU; without the feature that is a slower one, tried
 * again. */
static const struct fnv1a_kernel *kernel_of(int i) {
    return fnv1a_kernel(cpu_limit(cpu_present(), limits[i]));
}

static void check(
    const struct fnv1a_kernel *kernel, uint64_t h, const uint8_t *bytes, size_t len, const char *what) {
    uint64_t want = plain(h, bytes, len), got = kernel->run(h, bytes, len);
    ck_assert_msg(want == got, "%s, %s: %zu bytes from state %016llx: %016llx, not %016llx", kernel->name,
        what, len, (unsigned long long)h, (unsigned long long)got, (unsigned long long)want);
}

START_TEST(kernels_agree_on_all_lengths) {
    seed();
    static uint8_t bytes[LENGTHS + 64];
    for (int kind = 0; kind < FILL_COUNT; kind++) {
        fill(bytes, sizeof bytes, (enum fill)kind);
        const uint8_t *at = bytes + kind * 7; /* not aligned */
        uint64_t start = kind ? random64() : FNV1A64_START, want = start;
        for (size_t len = 0; len <= LENGTHS; want = plain(want, at + len, 1), len++) {
            uint64_t got = kernel_of(_i)->run(start, at, len);
            ck_assert_msg(got == want, "%s, fill %d: %zu bytes", kernel_of(_i)->name, kind, len);
        }
    }
}
END_TEST

START_TEST(kernels_agree_on_all_low_bytes_of_the_state) {
    seed();
    static uint8_t bytes[3 * 4096];
    fill(bytes, sizeof bytes, FILL_RANDOM);
    for (unsigned low = 0; low < 256; low++) {
        uint64_t h = (random64() & ~UINT64_C(255)) | low;
        check(kernel_of(_i), h, bytes + low % 64, 4096 * 2 + low, "random");
        check(kernel_of(_i), low, bytes + low, 2048, "random, bare low byte");
    }
}
END_TEST

START_TEST(kernels_agree_on_random_pieces) {
    seed();
    static uint8_t bytes[1 << 20];
    fill(bytes, sizeof bytes, FILL_RANDOM);
    for (int i = 0; i < 1000; i++) {
        size_t len = random64() % 20000;
        check(kernel_of(_i), random64(), bytes + random64() % (sizeof bytes - len), len, "random");
    }
    uint64_t h = FNV1A64_START;
    for (size_t at = 0, piece; at < sizeof bytes; at += piece) {
        piece = random64() % 3 ? random64() % 10000 : random64() % 10;
        piece = piece < sizeof bytes - at ? piece : sizeof bytes - at;
        h = kernel_of(_i)->run(h, bytes + at, piece);
    }
    ck_assert_uint_eq(h, plain(FNV1A64_START, bytes, sizeof bytes));
}
END_TEST

START_TEST(kernels_agree_on_large_buffers) {
    seed();
    uint8_t *bytes = malloc(LARGE);
    ck_assert_ptr_nonnull(bytes);
    for (int kind = 0; kind < FILL_COUNT; kind++) {
        fill(bytes, LARGE, (enum fill)kind);
        for (int i = 0; i < LIMITS; i++)
            check(kernel_of(i), FNV1A64_START, bytes + kind, LARGE - 17 * (size_t)kind, "large");
    }
    free(bytes);
}
END_TEST

/* Exact allocations: a kernel that reads past an end fails under AddressSanitizer and valgrind. */
START_TEST(kernels_stay_inside_their_input) {
    seed();
    for (size_t len = 0; len < LENGTHS; len += 1 + random64() % 40) {
        uint8_t *exact = malloc(len + 1);
        ck_assert_ptr_nonnull(exact);
        fill(exact, len + 1, FILL_RANDOM);
        check(kernel_of(_i), random64(), exact + 1, len, "exact allocation");
        free(exact);
    }
}
END_TEST

START_TEST(limits_choose_the_kernel) {
    const unsigned all = CPU_AVX2 | CPU_AVX512;
    ck_assert_uint_eq(cpu_limit(all, "portable"), 0);
    ck_assert_uint_eq(cpu_limit(all, "avx2"), CPU_AVX2);
    ck_assert_uint_eq(cpu_limit(all, "avx512"), all);
    ck_assert_uint_eq(cpu_limit(CPU_AVX2, "avx512"), CPU_AVX2); /* does not make it up */
    ck_assert_uint_eq(cpu_limit(0, "avx2"), 0);
    ck_assert_uint_eq(cpu_limit(all, NULL), all);
    ck_assert_uint_eq(cpu_limit(all, ""), all);
    ck_assert_uint_eq(cpu_limit(all, "AVX2"), all); /* unknown: no limit */
    ck_assert_uint_eq(cpu_limit(all, "avx"), all);
    ck_assert_str_eq(fnv1a_kernel(0)->name, "portable");
    for (int i = 0; i < LIMITS; i++)
        if ((cpu_present() & all) == all)
            ck_assert_str_eq(kernel_of(i)->name, limits[i]);
}
END_TEST

/* Runs this program anew with CKPTFS_CPU=value; it prints the kernel's name (see main). */
static void chosen(const char *value, char name[32]) {
    char self[512], command[700];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(len, 0);
    self[len] = '\0';
    snprintf(command, sizeof command, "CKPTFS_CPU='%s' '%s' kernel", value, self);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_ptr_nonnull(fgets(name, 32, pipe));
    ck_assert_int_eq(pclose(pipe), 0);
}

START_TEST(the_environment_is_honoured) {
    char name[32];
    for (int i = 0; i < LIMITS; i++) {
        chosen(limits[i], name);
        ck_assert_str_eq(name, kernel_of(i)->name);
    }
    chosen("nonsense", name);
    ck_assert_str_eq(name, fnv1a_kernel(cpu_present())->name);
}
END_TEST

/* ---- digests --------------------------------------------------------------------------------------------
 */

static void digest_is(enum hash_kind kind, const void *bytes, size_t len, const char *want) {
    uint8_t digest[HASH_DIGEST_MAX];
    char hex[2 * HASH_DIGEST_MAX + 1];
    ck_assert_int_eq(hash_bytes(kind, bytes, len, digest, NULL), 0);
    text_hex(digest, hash_table[kind].digest_bytes, hex);
    ck_assert_str_eq(hex, want);
}

START_TEST(known_answers) {
    digest_is(HASH_FNV1A64, "", 0, "cbf29ce484222325");
    digest_is(HASH_FNV1A64, "a", 1, "af63dc4c8601ec8c");
    digest_is(HASH_FNV1A64, "foobar", 6, "85944171f73967e8");
    digest_is(HASH_SHA256, "", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_is(HASH_SHA256, "abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest_is(HASH_SHA256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    static char million[1000000];
    memset(million, 'a', sizeof million);
    digest_is(HASH_SHA256, million, sizeof million,
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    digest_is(HASH_FNV1A64, NULL, 0, "cbf29ce484222325");
    digest_is(HASH_SHA256, NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
END_TEST

START_TEST(the_table_names_its_digests) {
    ck_assert_str_eq(hash_table[HASH_FNV1A64].name, "fnv1a64");
    ck_assert_uint_eq(hash_table[HASH_FNV1A64].digest_bytes, 8);
    ck_assert_str_eq(hash_table[HASH_SHA256].name, "sha256");
    ck_assert_uint_eq(hash_table[HASH_SHA256].digest_bytes, 32);
}
END_TEST

START_TEST(pieces_give_the_digest_of_the_whole) {
    seed();
    static uint8_t bytes[300000];
    fill(bytes, sizeof bytes, FILL_RANDOM);
    uint8_t whole[HASH_DIGEST_MAX], pieces[HASH_DIGEST_MAX];
    ck_assert_int_eq(hash_bytes((enum hash_kind)_i, bytes, sizeof bytes, whole, NULL), 0);
    struct hash_state *state;
    ck_assert_int_eq(hash_new((enum hash_kind)_i, &state, NULL), 0);
    for (int round = 0; round < 20; round++) {
        for (size_t at = 0, piece; at < sizeof bytes; at += piece) {
            piece = random64() % (round % 2 ? 50000 : 3000);
            piece = piece < sizeof bytes - at ? piece : sizeof bytes - at;
            hash_update(state, bytes + at, piece);
        }
        hash_final(state, pieces);
        ck_assert_mem_eq(whole, pieces, hash_table[_i].digest_bytes);
        hash_reset(state);
    }
    hash_free(state);
}
END_TEST

START_TEST(reset_forgets_what_was_begun) {
    uint8_t fresh[HASH_DIGEST_MAX], again[HASH_DIGEST_MAX];
    ck_assert_int_eq(hash_bytes((enum hash_kind)_i, "abc", 3, fresh, NULL), 0);
    struct hash_state *state;
    ck_assert_int_eq(hash_new((enum hash_kind)_i, &state, NULL), 0);
    hash_update(state, "something else", 14);
    hash_reset(state);
    hash_update(state, "abc", 3);
    hash_final(state, again);
    ck_assert_mem_eq(fresh, again, hash_table[_i].digest_bytes);
    hash_free(state);
    hash_free(NULL);
}
END_TEST

START_TEST(one_bit_changes_the_digest) {
    uint8_t bytes[5000] = {0}, before[HASH_DIGEST_MAX], after[HASH_DIGEST_MAX];
    ck_assert_int_eq(hash_bytes((enum hash_kind)_i, bytes, sizeof bytes, before, NULL), 0);
    for (size_t at = 0; at < sizeof bytes; at += 7) {
        bytes[at] ^= (uint8_t)(1 << at % 8);
        ck_assert_int_eq(hash_bytes((enum hash_kind)_i, bytes, sizeof bytes, after, NULL), 0);
        ck_assert_mem_ne(before, after, hash_table[_i].digest_bytes);
        bytes[at] ^= (uint8_t)(1 << at % 8);
    }
}
END_TEST

START_TEST(block_digests_depend_on_key_and_content) {
    struct block_key key, other;
    ck_assert_int_eq(block_key_new(&key, NULL), 0);
    ck_assert_int_eq(block_key_new(&other, NULL), 0);
    ck_assert_mem_ne(&key, &other, sizeof key);
    static uint8_t bytes[65536];
    for (size_t len = 0; len <= sizeof bytes; len = len ? len * 4 : 1) {
        uint64_t digest = block_digest(&key, bytes, len);
        ck_assert_uint_eq(block_digest(&key, bytes, len), digest);
        ck_assert_uint_eq(XXH3_64bits_withSecret(bytes, len, key.secret, sizeof key.secret), digest);
        ck_assert_uint_ne(block_digest(&other, bytes, len), digest);
        if (len == 0)
            continue;
        bytes[len - 1] ^= 1;
        ck_assert_uint_ne(block_digest(&key, bytes, len), digest);
        bytes[len - 1] ^= 1;
    }
}
END_TEST

static TCase *kernel_case(void) {
    TCase *tcase = tcase_create("kernels");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, kernels_agree_on_all_lengths, 0, LIMITS);
    tcase_add_loop_test(tcase, kernels_agree_on_all_low_bytes_of_the_state, 0, LIMITS);
    tcase_add_loop_test(tcase, kernels_agree_on_random_pieces, 0, LIMITS);
    tcase_add_loop_test(tcase, kernels_stay_inside_their_input, 0, LIMITS);
    tcase_add_test(tcase, kernels_agree_on_large_buffers);
    tcase_add_test(tcase, limits_choose_the_kernel);
    tcase_add_test(tcase, the_environment_is_honoured);
    return tcase;
}

static TCase *digest_case(void) {
    TCase *tcase = tcase_create("digests");
    tcase_add_test(tcase, known_answers);
    tcase_add_test(tcase, the_table_names_its_digests);
    tcase_add_loop_test(tcase, pieces_give_the_digest_of_the_whole, 0, HASH_KIND_COUNT);
    tcase_add_loop_test(tcase, reset_forgets_what_was_begun, 0, HASH_KIND_COUNT);
    tcase_add_loop_test(tcase, one_bit_changes_the_digest, 0, HASH_KIND_COUNT);
    tcase_add_test(tcase, block_digests_depend_on_key_and_content);
    return tcase;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "kernel") == 0)
        return fputs(fnv1a_kernel(cpu_features())->name, stdout) < 0;
    Suite *suite = suite_create("hash");
    suite_add_tcase(suite, kernel_case());
    suite_add_tcase(suite, digest_case());
    return unit_run(suite);
}
