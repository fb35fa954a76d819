/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are often taken for checkpoints, told by their first bytes. */
#ifndef FORMAT_MISTAKE_H
#define FORMAT_MISTAKE_H

#include "base/err.h"

/* FORMAT, with a message that names what the bytes are, when they are a common mistake; else 0. */
int mistake_check(const uint8_t *head, size_t head_len, struct ckpt_err *err);

#endif
