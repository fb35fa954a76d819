/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options: parsing and --help read the same rows. */
#ifndef FUSE_OPTION_ROWS_H
#define FUSE_OPTION_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_ACCEPT, /* changes nothing: what mount(8) and fstab hand over, and what always holds here */
    OPTION_LIST,   /* -o: more options, separated by commas */
    OPTION_SET,    /* bool field = true */
    OPTION_CLEAR,  /* bool field = false */
    OPTION_TEXT,   /* char * field, not empty */
    OPTION_NUMBER, /* uint64_t field, decimal, at most `max` */
    OPTION_OCTAL,  /* likewise, octal */
    OPTION_SIZE,   /* uint64_t field, bytes with an optional K, M, G or T */
    OPTION_CHOICE, /* uint64_t field: which of the words of `value`, counted from 0 */
};

/* A switch ("-f") or a word of a list ("quiet"; one that ends with '=' has a value; one that ends with '*'
 * stands for all that begin so). */
struct option_row {
    const char *name, *longname; /* longname: of a switch, or NULL */
    enum option_kind kind;
    size_t field; /* offset in struct options */
    uint64_t max;
    const char *value, *help; /* help NULL: not shown by --help */
};

/* NULL: there is none. */
const struct option_row *option_letter(char letter);
const struct option_row *option_long(const char *name);
const struct option_row *option_word(const char *word);

#endif
