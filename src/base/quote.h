/* SPDX-License-Identifier: Apache-2.0 */
/* Names and shapes of a file as they stand in messages: on one line, harmless to a terminal, not too long. */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stddef.h>
#include <stdint.h>

struct quoted {
    char text[128];
};

/* 'name' with quotes, backslashes and control bytes escaped, cut with "..." when long; returns quoted->text.
 */
const char *quote(struct quoted *quoted, const char *name, size_t len);
/* "[2, 3]", cut with "..." when long; returns quoted->text. */
const char *quote_shape(struct quoted *quoted, const uint64_t *shape, size_t rank);

#endif
