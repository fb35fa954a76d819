/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored elements to float32: pure kernels, no allocation, no errors. Inputs need no alignment; outputs are
 * little-endian float32 bytes and need none either.
 *
 * Q4 and Q8 (blocks of 32): value = float32(q * scale), q = nibble - 7 or the signed byte.
 */
#ifndef DEQUANT_DEQUANT_H
#define DEQUANT_DEQUANT_H

#include "catalog/catalog.h"

#define DEQUANT_BLOCK 32

/*
 * count elements into out (4 * count bytes), from element `skip` (0 to 31) of the first block on. ints starts
 * at that block's integers, scales at its scale; further blocks follow each.
 */
void dequant_q4(const uint8_t *ints, const uint8_t *scales, uint64_t skip, uint64_t count, uint8_t *out);
void dequant_q8(const uint8_t *ints, const uint8_t *scales, uint64_t skip, uint64_t count, uint8_t *out);

/* count elements of a type that dtype_table says widens (BF16 and the 8-bit floats), exactly. A NaN stays a
 * NaN; BF16 keeps its payload. */
void widen(enum dtype dtype, const uint8_t *in, uint64_t count, uint8_t *out);

/* Bytes of a block's integers: 16 for Q4, 32 for Q8. */
unsigned dequant_block_bytes(enum encoding encoding);

#endif
