/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a JSON object, to be compared with those of another. */
#ifndef PACK_MEMBERS_H
#define PACK_MEMBERS_H

#include "base/arena.h"
#include "base/err.h"

struct member {
    const char *key; /* decoded, and a NUL */
    size_t key_len;
    const char *json; /* the value as it is written, in the object's own text */
    size_t json_len;
    const char *text; /* of a string: decoded; NULL for any other value */
    size_t text_len;
};

struct members {
    bool is_object;       /* false: the text is something else, and there are none */
    struct member *items; /* by key, each key once: the last of several; owned */
    size_t count;
};

/* The text outlives the members; keys and strings go into the arena. Errors: NOMEM. */
int members_read(
    const char *json, size_t len, struct arena *arena, struct members *ret_members, struct ckpt_err *err);
void members_free(struct members *members); /* a zeroed one is allowed */

int members_order(const struct member *a, const struct member *b); /* of their keys, as strcmp */
/* Whether the values are the same: strings by what they mean, all else as it is written. */
bool members_same(const struct member *a, const struct member *b);

#endif
