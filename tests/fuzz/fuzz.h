/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the targets share: reading bytes in memory with judges of their own, and what must hold of everything
 * that a reader accepted. A target ends the process when something does not hold.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "format/format.h"

/* Each target defines it; always returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As assert, in every build. */
#define HOLDS(condition) ((condition) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_broken(const char *file, int line, const char *condition);

/* A result of the library: err tells of it, on one line that is harmless to a terminal. */
void fuzz_error_holds(int rc, const struct ckpt_err *err);

/* ---- reading a checkpoint ---------------------------------------------------------------------------- */

/* Who hashes: `file` is read for it, whatever the reader reads. The catalog gets its envelope's manifest. */
struct fuzz_court {
    struct source *file;
    struct catalog *catalog;
    bool strict;
};
struct unit_judge fuzz_judge(struct fuzz_court *court);

/* Over bytes that outlive it, with the files "a" and "b" beside it, each a safetensors file of two tensors of
 * two bytes ("a0", "a1", "b0", "b1"). Never NULL. */
struct source *fuzz_source(const void *bytes, size_t len);

/* Parses bytes with one reader (NULL: whichever knows them), and checks the catalog; free it in any case. */
int fuzz_parse(
    const struct format *format, const uint8_t *data, size_t size, bool strict, struct catalog *ret_catalog);

/* Everything in a catalog lies where it may, and each tensor is what its shape says. */
void fuzz_catalog_holds(const struct catalog *catalog);

/* Reads bytes strictly and lazily, and checks both; true when the strict reader accepts them. */
bool fuzz_format(const struct format *format, const uint8_t *data, size_t size);

#endif
