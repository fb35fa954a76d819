/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects of files: texts read whole, objects whose keys are to be there once. */
#ifndef FORMAT_OBJECT_H
#define FORMAT_OBJECT_H

#include "base/json.h"
#include "source/source.h"

/* [off, off + len) of the source in memory of its own (free), read in small pieces. Errors: IO, CHANGED,
 * NOMEM. */
int object_load(struct source *source, uint64_t off, size_t len, char **ret_text, struct ckpt_err *err);

/*
 * Whether the text is well-formed JSON, one object, no key of it twice (deeper ones are not compared), and
 * how many members it has. A reader that walks the text afterwards meets JSON_ERROR for want of memory only
 * (json_no_memory). what names the text in messages, depth_max how deep it may nest. ret_repeated NULL: a
 * repeated key is CORRUPT; else it is told there and the caller judges. Errors: CORRUPT, NOMEM.
 */
int object_survey(const char *text, size_t len, const char *what, unsigned depth_max, uint64_t *ret_members,
    bool *ret_repeated, struct ckpt_err *err);

/*
 * The keys of one object as they are walked over. Repeats are found by sorting, hash first and text second,
 * so that keys made to collide cost a comparison of texts and nothing worse. 12 bytes a key: a key's text
 * is looked up where it stands, unless it has escapes. The text is shorter than 2^31 bytes.
 */
struct keys {
    const char *text;
    size_t len;
    struct buf decoded; /* keys that have escapes */
    struct key *list;
    size_t count, cap;
};

void keys_start(struct keys *keys, const char *text, size_t len);
/* Adds the JSON_KEY that json just returned; json reads keys->text. False: no memory. */
bool keys_add(struct keys *keys, const struct json *json);
/* The first key (in no order of meaning) that is there twice, valid until the next keys_ call. Sorts: NOMEM
 * never. */
bool keys_repeated(struct keys *keys, const char **ret_key, size_t *ret_len);
void keys_clear(struct keys *keys); /* for the next object of the same text; keeps the memory */
void keys_free(struct keys *keys);

#endif
