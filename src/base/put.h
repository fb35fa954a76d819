/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in text that has a million of them, so without printf. */
#ifndef BASE_PUT_H
#define BASE_PUT_H

#include "base/buf.h"

unsigned put_digits(uint64_t value); /* how many put_u64 writes */
void put_u64(struct buf *buf, uint64_t value);
/* "3<comma>4<comma>5" */
void put_list(struct buf *buf, const uint64_t *values, uint32_t count, const char *comma);

#endif
