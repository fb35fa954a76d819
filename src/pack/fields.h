/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a JSON object into the fields of a struct, by a table. No member may be there twice, and
 * numbers have to fit exactly.
 */
#ifndef PACK_FIELDS_H
#define PACK_FIELDS_H

#include "base/json.h"
#include "pack/model.h"

enum field_kind {
    FIELD_U8,
    FIELD_U32,
    FIELD_U64,
    FIELD_I64,
    FIELD_BOOL,
    FIELD_TEXT,     /* struct model_text, copied to the arena */
    FIELD_DTYPE,    /* uint8_t of enum dtype, by its name */
    FIELD_ENCODING, /* uint8_t of enum encoding, by its name */
    FIELD_F32, /* uint32_t, the bits: a number, or "NaN", "Infinity", "-Infinity" (also "nan", "inf", "-inf");
                  or its eight hexadecimal digits in a member NAME_bits, which must agree when both are there
                */
    FIELD_CUSTOM, /* what fields->custom makes of it */
    FIELD_SKIP,   /* known and passed over */
};

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset; /* in the struct */
    bool optional; /* then the struct keeps what it had */
};

#define FIELDS_MAX 32

struct fields {
    const struct field *table;
    size_t count; /* at most FIELDS_MAX */
    bool open;    /* members that the table does not know are passed over; else they are refused */
    void *into;
    struct arena *arena;
    /* Reads the value that comes next; a fault is wrapped with the member's name. */
    int (*custom)(void *arg, const struct field *field, struct json *json, struct ckpt_err *err);
    void *arg;
};

#define FIELDS(list) list, sizeof(list) / sizeof *(list)

/* The object that comes next. Errors: INVAL, NOMEM, and those of custom. */
int fields_read(const struct fields *fields, struct json *json, struct ckpt_err *err);
/* The rest of an object whose JSON_OBJECT was just returned. Errors: likewise. */
int fields_members(const struct fields *fields, struct json *json, struct ckpt_err *err);

/* The whole text is one such object. */
int fields_parse(const struct fields *fields, const char *text, size_t len, struct ckpt_err *err);

/* INVAL with what the JSON reader found, or with what was wanted instead of `event`; NOMEM where it ran out.
 */
int json_wanted(const struct json *json, enum json_event event, const char *what, struct ckpt_err *err);

#endif
