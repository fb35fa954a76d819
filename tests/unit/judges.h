/* SPDX-License-Identifier: Apache-2.0 */
/* Judges over bytes in memory: a strict one that hashes in order, a lazy one that hashes where it is asked to
 * blame. The digests are computed here, not by the code under test. */
#ifndef TESTS_UNIT_JUDGES_H
#define TESTS_UNIT_JUDGES_H

#include "format/format.h"
#include "unit.h"

#include <openssl/sha.h>
#include <string.h>

struct bench {
    const uint8_t *bytes;
    size_t len;
    bool strict;
    bool blind;                /* never looks: everything holds */
    int sick;                  /* not 0: what is answered instead of looking */
    unsigned in_order, blamed; /* how often it was asked */
    unsigned tables;
};

static inline bool unit_holds(const struct bench *bench, const struct unit *unit) {
    uint8_t found[SHA256_DIGEST_LENGTH] = {0};
    ck_assert(unit->at.off <= bench->len && unit->at.len <= bench->len - unit->at.off);
    const uint8_t *at = bench->bytes + unit->at.off;
    if (unit->kind == DIGEST_SHA256) {
        SHA256(at, unit->at.len, found);
        return !memcmp(found, unit->digest, sizeof found);
    }
    uint64_t h = 0xcbf29ce484222325;
    for (uint64_t i = 0; i < unit->at.len; i++)
        h = (h ^ at[i]) * 0x100000001b3;
    for (int i = 0; i < 8; i++)
        found[i] = (uint8_t)(h >> (56 - 8 * i));
    return !memcmp(found, unit->digest, 8);
}

static inline int bench_check(const struct bench *bench, const struct unit *unit, struct ckpt_err *err) {
    char words[40];
    if (bench->sick)
        return err_set(err, bench->sick, "sick");
    if (bench->blind || unit_holds(bench, unit))
        return 0;
    if (unit->kind == DIGEST_FNV1A64)
        return err_verdict(err, CKPT_E_CORRUPT, "section payload checksum mismatch", "%s", unit->label);
    snprintf(words, sizeof words, "chunk-mismatch %llu", (unsigned long long)unit->index);
    return err_verdict(err, CKPT_E_MISMATCH, words, "at %llu", (unsigned long long)unit->at.off);
}

static inline int bench_unit(void *arg, const struct unit *unit, enum unit_when when, struct ckpt_err *err) {
    struct bench *bench = arg;
    *(when == UNIT_BLAME ? &bench->blamed : &bench->in_order) += 1;
    return bench->strict == (when == UNIT_IN_ORDER) ? bench_check(bench, unit, err) : 0;
}

static inline int bench_table(void *arg, const struct unit_table *table, struct ckpt_err *err) {
    struct bench *bench = arg;
    int rc = 0;
    bench->tables++;
    for (uint64_t i = 0; bench->strict && !rc && i < table->count; i++) {
        const struct unit unit = unit_get(table, i);
        rc = bench_check(bench, &unit, err);
    }
    return rc;
}

/* Parses the bench's bytes. Free the catalog in any case. */
static inline int bench_parse(struct bench *bench, const struct format *format, uint64_t base,
    struct catalog *catalog, struct ckpt_err *err) {
    const struct unit_judge judge = {.unit = bench_unit, .table = bench_table, .arg = bench};
    struct source *source;
    *catalog = (struct catalog){0};
    ck_assert_int_eq(source_from_mem("memory", bench->bytes + base, bench->len - base, &source, NULL), 0);
    int rc = format->parse(&source, base, &judge, catalog, err);
    source_close(source);
    return rc;
}

static inline void sha256_hex(const void *bytes, size_t len, char out[65]) {
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256(bytes, len, digest);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

#endif
