/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing through the public interface, and the machinery that hashes chunks with all cores. */
#include "base/ovf.h"
#include "folder.h"
#include "hash/hash.h"
#include "pack/seal_chunks.h"
#include "pack/seal_header.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>

static struct ckpt_err err;

static void setup(void) {
    folder_make();
    err = (struct ckpt_err){0};
}

/* ---- the header ---------------------------------------------------------------------------------------- */

START_TEST(header_lengths) {
    static const uint64_t rows[][3] = {{0, 0, 4096}, {0, 1, 4096}, {1, 1, 4096}, {121, 1, 4096},
        {122, 1, 8192}, {122 * 7, 7, 8192}, {121 * 7, 7, 4096}, {121 * 7 + 1, 7, 8192}, {249, 1, 8192},
        {250, 1, 12288}, {33554425, 1, UINT64_C(1) << 30}, {UINT64_MAX, UINT64_MAX, 4096},
        {UINT64_MAX, UINT64_C(1) << 40, 536875008}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t len;
        ck_assert_int_eq(seal_header_bytes(rows[i][0], rows[i][1], &len, &err), 0);
        ck_assert_msg(len == rows[i][2], "%" PRIu64 " in %" PRIu64 ": %" PRIu64, rows[i][0], rows[i][1], len);
    }
    uint64_t len = 5;
    ck_assert_int_eq(seal_header_bytes(33554426, 1, &len, &err), CKPT_E_LIMIT);
    ck_assert_int_eq(seal_header_bytes(UINT64_MAX, 1, &len, &err), CKPT_E_LIMIT);
    ck_assert_int_eq(seal_header_bytes(1, 0, &len, &err), CKPT_E_INVAL);
    ck_assert_uint_eq(len, 5);
}
END_TEST

/* ---- chunks -------------------------------------------------------------------------------------------- */

/* A payload in memory, of which pieces can be bad; `step` of it more arrive at a time. */
struct payload {
    uint8_t *bytes;
    uint64_t len, step, arrived;
    uint64_t bad, bad_too; /* reads of these bytes fail with `code` */
    int code;
    uint8_t *copy, *seen; /* what was written; a byte a chunk: how often its digest came */
    uint64_t chunk, count;
    pthread_t caller;
    bool told_elsewhere;
};

static int payload_more(void *arg, uint64_t *bytes, bool *ended, struct ckpt_err *fault) {
    struct payload *payload = arg;
    (void)fault;
    payload->arrived += ovf_min(payload->step, payload->len - payload->arrived);
    *bytes = payload->arrived;
    *ended = payload->arrived == payload->len;
    return 0;
}

static bool inside(uint64_t byte, uint64_t off, size_t len) {
    return byte >= off && byte - off < len;
}

static int payload_read(void *arg, uint64_t off, void *buf, size_t len, struct ckpt_err *fault) {
    struct payload *payload = arg;
    ck_assert(ovf_inside(off, len, payload->len));
    memcpy(buf, payload->bytes + off, len);
    if (payload->code && (inside(payload->bad, off, len) || inside(payload->bad_too, off, len)))
        return err_set(fault, payload->code, "bad at %" PRIu64, off);
    return 0;
}

static int payload_write(void *arg, uint64_t off, const void *bytes, size_t len, struct ckpt_err *fault) {
    struct payload *payload = arg;
    (void)fault;
    memcpy(payload->copy + off, bytes, len);
    return 0;
}

static int payload_digests(
    void *arg, uint64_t first, uint64_t count, const uint8_t (*digests)[32], struct ckpt_err *fault) {
    struct payload *payload = arg;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t off = (first + i) * payload->chunk;
        uint8_t wanted[HASH_DIGEST_MAX];
        int rc = hash_bytes(HASH_SHA256, payload->bytes + off,
            (size_t)ovf_min(payload->chunk, payload->len - off), wanted, fault);
        ck_assert_int_eq(rc, 0);
        ck_assert_msg(!memcmp(wanted, digests[i], 32), "chunk %" PRIu64, first + i);
        payload->seen[first + i]++;
    }
    return 0;
}

static void payload_make(struct payload *payload, uint64_t len, uint64_t chunk) {
    *payload = (struct payload){.len = len, .chunk = chunk, .caller = pthread_self()};
    payload->count = len / chunk + (len % chunk != 0);
    payload->bytes = malloc(len + 1);
    payload->copy = calloc(1, len + 1);
    payload->seen = calloc(1, payload->count + 1);
    for (uint64_t i = 0; i < len; i++)
        payload->bytes[i] = (uint8_t)(i * 31 + i / 257);
}

static void payload_free(struct payload *payload) {
    free(payload->bytes);
    free(payload->copy);
    free(payload->seen);
}

static struct chunks chunks_of(struct payload *payload) {
    return (struct chunks){.chunk_bytes = payload->chunk,
        .bytes = payload->step ? 0 : payload->len,
        .more = payload->step ? payload_more : NULL,
        .read = payload_read,
        .write = payload_write,
        .digests = payload_digests,
        .arg = payload};
}

static const uint64_t sizes[][2] = {{0, 1}, {1, 1}, {5000, 1}, {5000, 7}, {1048576, 1048576},
    {1048577, 1048576}, {4000000, 1048575}, {4000000, 1 << 22}, {1000000, UINT64_MAX},
    {5000000, UINT64_C(1) << 63}, {9000000, 3000001}};

START_TEST(each_chunk_once) {
    static const uint64_t steps[] = {0, 1 << 20, 65536, 9999};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        struct payload payload;
        payload_make(&payload, sizes[_i][0], sizes[_i][1]);
        payload.step = steps[s];
        const struct chunks chunks = chunks_of(&payload);
        ck_assert_msg(chunks_run(&chunks, NULL, &err) == 0, "%s", err.msg);
        ck_assert_int_eq(memcmp(payload.bytes, payload.copy, payload.len), 0);
        for (uint64_t i = 0; i < payload.count; i++)
            ck_assert_uint_eq(payload.seen[i], 1);
        payload_free(&payload);
    }
}
END_TEST

/* However the threads race, the first bad chunk is the one that is named. */
START_TEST(the_first_of_two_faults) {
    struct payload payload;
    payload_make(&payload, 16 << 20, 2500000);
    payload.bad = 7500000 - 1; /* the last byte of chunk 2; chunk 3 fails in its first piece */
    payload.bad_too = 7500000;
    payload.code = CKPT_E_MISMATCH;
    const struct chunks chunks = chunks_of(&payload);
    ck_assert_int_eq(chunks_run(&chunks, NULL, &err), CKPT_E_MISMATCH);
    ck_assert_str_eq(err.words, "bad at 7097152");
    payload.code = CKPT_E_IO;
    ck_assert_int_eq(chunks_run(&chunks, NULL, NULL), CKPT_E_IO);
    payload_free(&payload);
}
END_TEST

START_TEST(a_fault_while_it_arrives) {
    struct payload payload;
    payload_make(&payload, 4 << 20, 300000);
    payload.step = 50000;
    payload.bad = payload.bad_too = 1000000;
    payload.code = CKPT_E_IO;
    const struct chunks chunks = chunks_of(&payload);
    ck_assert_int_eq(chunks_run(&chunks, NULL, &err), CKPT_E_IO);
    payload_free(&payload);
}
END_TEST

/* ---- the caller ---------------------------------------------------------------------------------------- */

static bool yes(void *arg) {
    struct payload *payload = arg;
    payload->told_elsewhere |= !pthread_equal(pthread_self(), payload->caller);
    return true;
}

static int nothing_more(void *arg, uint64_t *bytes, bool *ended, struct ckpt_err *fault) {
    (void)arg, (void)fault;
    *bytes = 10; /* and it goes on */
    *ended = false;
    sched_yield();
    return 0;
}

START_TEST(stopped_while_nothing_comes) {
    struct payload payload;
    payload_make(&payload, 100, 30);
    struct chunks chunks = chunks_of(&payload);
    chunks.more = nothing_more;
    const struct ckpt_cancel cancel = {yes, &payload};
    const struct ckpt_write_options options = {.cancel = &cancel};
    ck_assert_int_eq(chunks_run(&chunks, &options, &err), CKPT_E_INTR);
    ck_assert(!payload.told_elsewhere);
    payload_free(&payload);
}
END_TEST

/* ---- the public calls ---------------------------------------------------------------------------------- */

static struct ckpt_seal plain(void) {
    return (struct ckpt_seal){
        .identity = {"a", "b", "c", "d"}, .chunk_bytes = 1000, .updates = 5, .invocations = 6};
}

static int payload_file(size_t len) {
    char *bytes = calloc(1, len + 1);
    memset(bytes, 'p', len);
    file_store(folder_file("payload"), bytes, len);
    free(bytes);
    return open(folder_file("payload"), O_RDONLY);
}

START_TEST(there_and_back) {
    struct ckpt_seal how = plain();
    int fd = payload_file(2500);
    ck_assert_int_eq(lseek(fd, 100, SEEK_SET), 100);
    ck_assert_msg(ckpt_seal(fd, &how, folder_file("sealed"), NULL, &err) == 0, "%s", err.msg);
    close(fd);
    struct ckpt_verdict verdict;
    ck_assert_int_eq(ckpt_verify(folder_file("sealed"), NULL, &verdict, &err), 0);
    ck_assert_str_eq(verdict.line, "accepted");
    ck_assert_uint_eq(verdict.units, 3);
    char manifest[80];
    snprintf(manifest, sizeof manifest, "sha256:%s", verdict.manifest);
    const struct ckpt_pins pins = {.manifest = manifest};
    ck_assert_int_eq(ckpt_unseal(folder_file("sealed"), &pins, folder_file("out"), NULL, &err), 0);
    struct buf bytes = file_load(folder_file("out"));
    ck_assert_uint_eq(bytes.len, 2400);
    buf_free(&bytes);
    ck_assert_uint_eq(folder_entries(), 3);
}
END_TEST

START_TEST(refused) {
    const struct ckpt_pins bad_manifest = {.manifest = "sha256:12"}, no_contract = {.contract = "/nowhere"};
    struct ckpt_seal how = plain();
    int fd = payload_file(10), folder_fd = open(folder, O_RDONLY);
    const char *out = folder_file("out");
    how.chunk_bytes = 0;
    ck_assert_int_eq(ckpt_seal(fd, &how, out, NULL, &err), CKPT_E_INVAL);
    how = plain();
    how.identity[2] = NULL;
    ck_assert_int_eq(ckpt_seal(fd, &how, out, NULL, &err), CKPT_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "data"));
    how.contract = "/nowhere";
    ck_assert_int_eq(ckpt_seal(fd, &how, out, NULL, &err), CKPT_E_IO);
    how = plain();
    ck_assert_int_eq(ckpt_seal(-1, &how, out, NULL, &err), CKPT_E_IO);
    ck_assert_int_eq(err.os_errno, EBADF);
    ck_assert_int_eq(ckpt_seal(folder_fd, &how, out, NULL, NULL), CKPT_E_IO);
    ck_assert_int_eq(ckpt_unseal(folder_file("payload"), NULL, out, NULL, &err), CKPT_E_FORMAT);
    ck_assert_int_eq(ckpt_unseal(folder_file("payload"), &bad_manifest, out, NULL, &err), CKPT_E_INVAL);
    ck_assert_int_eq(ckpt_unseal(folder_file("payload"), &no_contract, out, NULL, &err), CKPT_E_IO);
    ck_assert_int_eq(ckpt_unseal(folder_file("none"), NULL, out, NULL, &err), CKPT_E_IO);
    ck_assert_uint_eq(folder_entries(), 1);
    close(folder_fd);
    close(fd);
}
END_TEST

/* The caller's question comes after the payload was looked at: it writes to it. */
static bool disturb(void *arg) {
    const char *path = arg;
    int fd = open(path, O_WRONLY | O_APPEND);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    close(fd);
    return false;
}

START_TEST(written_to_meanwhile) {
    struct ckpt_seal how = plain();
    int fd = payload_file(64 << 20); /* takes longer than until the first question */
    const struct ckpt_cancel cancel = {disturb, (void *)folder_file("payload")};
    const struct ckpt_write_options options = {.cancel = &cancel};
    how.chunk_bytes = 1 << 20;
    ck_assert_int_eq(ckpt_seal(fd, &how, folder_file("out"), &options, &err), CKPT_E_CHANGED);
    ck_assert_uint_eq(folder_entries(), 1);
    close(fd);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("seal");
    TCase *tcase = tcase_create("all");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, folder_clear);
    tcase_add_test(tcase, header_lengths);
    tcase_add_loop_test(tcase, each_chunk_once, 0, sizeof sizes / sizeof *sizes);
    tcase_add_loop_test(tcase, the_first_of_two_faults, 0, 20);
    tcase_add_loop_test(tcase, a_fault_while_it_arrives, 0, 20);
    tcase_add_test(tcase, stopped_while_nothing_comes);
    tcase_add_test(tcase, there_and_back);
    tcase_add_test(tcase, refused);
    tcase_add_test(tcase, written_to_meanwhile);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
