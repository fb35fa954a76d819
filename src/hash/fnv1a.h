/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a, 64 bits (Fowler, Noll, Vo): from FNV1A64_START, each byte makes h = (h ^ byte) * p mod 2^64. */
#ifndef HASH_FNV1A_H
#define HASH_FNV1A_H

#include <stddef.h>
#include <stdint.h>

#define FNV1A64_START UINT64_C(0xcbf29ce484222325)
#define FNV1A64_PRIME UINT64_C(0x100000001b3)

/* Goes on from state h over len bytes; h is the whole state, so pieces of any size may follow each other.
 * Chooses the fastest kernel that this CPU has. */
uint64_t fnv1a64(uint64_t h, const void *bytes, size_t len);

#endif
