/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the JSON that the library wrote, in place: a value is a span of the text, and numbers stay text, so
 * that 64-bit integers are exact. The text must be well-formed. Nothing is allocated, nothing recurses.
 */
#ifndef CLI_DOC_H
#define CLI_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One value; len 0: there is none. Every call takes such a value, and finds nothing in it. */
struct doc {
    const char *at;
    size_t len;
};

struct doc doc_of(const char *text);
/* The member `key` (plain ASCII) of an object; none when there is none, or when it is null. */
struct doc doc_get(struct doc object, const char *key);
bool doc_is_object(struct doc value);
bool doc_is_true(struct doc value);
bool doc_is_string(struct doc value);
/* A plain non-negative integer; false, with *ret_value untouched, when it is none. */
bool doc_u64(struct doc value, uint64_t *ret_value);

/* Members of an object or elements of an array (key is none), in order. Start with {0}. */
struct doc_walk {
    size_t at;
};
bool doc_next(struct doc container, struct doc_walk *walk, struct doc *ret_key, struct doc *ret_value);
uint64_t doc_count(struct doc container);

/* A scalar as text for people: a string without its quotes, control bytes escaped; anything else as it is
 * written. At most max characters of the text, then "...". */
void doc_put(FILE *stream, struct doc value, size_t max);
/* The value over several lines, indented by 2 a level, and a newline. */
void doc_print(FILE *stream, struct doc value);

#endif
