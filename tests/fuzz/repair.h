/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes sizes and checksums of a mutated file right again, so that a reader looks further than those. Never
 * fails: what is too broken stays as it is.
 */
#ifndef TESTS_FUZZ_REPAIR_H
#define TESTS_FUZZ_REPAIR_H

#include <stddef.h>
#include <stdint.h>

enum repair_kind { REPAIR_OTHER, REPAIR_OAM, REPAIR_ENVELOPE, REPAIR_SAFETENSORS };
enum repair_kind repair_kind(const uint8_t *bytes, size_t len);

/* Returns the new length, at most max. Only a safetensors file changes its length. */
size_t repair(uint8_t *bytes, size_t len, size_t max);

/* A part of the file where a mutation is worth it, chosen by `choice`. */
void repair_window(const uint8_t *bytes, size_t len, unsigned choice, size_t *ret_off, size_t *ret_len);

#endif
