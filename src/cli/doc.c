/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doc.h"

#include "cli/out.h"

#include <stdlib.h>
#include <string.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t skip_blanks(struct doc doc, size_t at) {
    while (at < doc.len && is_blank(doc.at[at]))
        at++;
    return at;
}

/* Just past the string whose opening quote is at `at`. */
static size_t skip_string(struct doc doc, size_t at) {
    for (at++; at < doc.len && doc.at[at] != '"'; at++)
        at += doc.at[at] == '\\';
    return at < doc.len ? at + 1 : doc.len;
}

/* Just past the value that begins at `at`. */
static size_t skip_value(struct doc doc, size_t at) {
    size_t depth = 0;
    while (at < doc.len) {
        char c = doc.at[at];
        if (c == '"')
            at = skip_string(doc, at);
        else if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                return at; /* the end of what holds this number */
            depth--;
            at++;
        } else if (depth == 0 && (c == ',' || is_blank(c)))
            return at;
        else {
            at++;
            continue;
        }
        if (depth == 0)
            return at;
    }
    return at;
}

static struct doc span(struct doc doc, size_t from, size_t to) {
    return (struct doc){doc.at + from, to - from};
}

struct doc doc_of(const char *text) {
    struct doc all = {text, strlen(text)};
    size_t from = skip_blanks(all, 0);
    return span(all, from, skip_value(all, from));
}

static bool is_container(struct doc value) {
    return value.len && (value.at[0] == '{' || value.at[0] == '[');
}

bool doc_is_object(struct doc value) {
    return value.len && value.at[0] == '{';
}

bool doc_is_string(struct doc value) {
    return value.len && value.at[0] == '"';
}

bool doc_is_true(struct doc value) {
    return value.len == 4 && !memcmp(value.at, "true", 4);
}

bool doc_next(struct doc container, struct doc_walk *walk, struct doc *ret_key, struct doc *ret_value) {
    if (!is_container(container))
        return false;
    size_t at = skip_blanks(container, walk->at ? walk->at : 1);
    if (at < container.len && container.at[at] == ',')
        at = skip_blanks(container, at + 1);
    if (at >= container.len || container.at[at] == '}' || container.at[at] == ']')
        return false;
    struct doc key = {0};
    if (container.at[0] == '{') {
        size_t end = skip_string(container, at);
        key = span(container, at, end);
        at = skip_blanks(container, skip_blanks(container, end) + 1);
    }
    walk->at = skip_value(container, at);
    *ret_key = key;
    *ret_value = span(container, at, walk->at);
    return true;
}

struct doc doc_get(struct doc object, const char *key) {
    struct doc_walk walk = {0};
    struct doc name, value;
    size_t len = strlen(key);
    while (doc_is_object(object) && doc_next(object, &walk, &name, &value))
        if (name.len == len + 2 && !memcmp(name.at + 1, key, len))
            return value.at[0] == 'n' ? (struct doc){0} : value;
    return (struct doc){0};
}

uint64_t doc_count(struct doc container) {
    struct doc_walk walk = {0};
    struct doc key, value;
    uint64_t count = 0;
    while (doc_next(container, &walk, &key, &value))
        count++;
    return count;
}

bool doc_u64(struct doc value, uint64_t *ret_value) {
    uint64_t total = 0;
    for (size_t i = 0; i < value.len; i++) {
        unsigned digit = (unsigned)(value.at[i] - '0');
        if (digit > 9 || total > (UINT64_MAX - digit) / 10)
            return false;
        total = total * 10 + digit;
    }
    if (value.len)
        *ret_value = total;
    return value.len > 0;
}

/* ---- printing ---------------------------------------------------------------------------------------- */

static unsigned hex4(const char *at) {
    char digits[5] = {at[0], at[1], at[2], at[3], 0};
    return (unsigned)strtoul(digits, NULL, 16);
}

static size_t utf8_encode(unsigned code, char out[4]) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)((0xF00 >> len & 0xFF) | code);
    return len;
}

/* A character that is no escape: all its bytes together. */
static size_t plain(struct doc inside, size_t at, char out[4]) {
    size_t len = 0;
    do
        out[len] = inside.at[at + len];
    while (++len < 4 && at + len < inside.len && ((unsigned char)inside.at[at + len] & 0xC0) == 0x80);
    return len;
}

/* Decodes one character of a string's inside into out; returns how many bytes it took. */
static size_t decode(struct doc inside, size_t at, char out[4], size_t *ret_len) {
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    if (inside.at[at] != '\\' || at + 1 >= inside.len)
        return *ret_len = plain(inside, at, out);
    char kind = inside.at[at + 1];
    const char *known = strchr(from, kind);
    out[0] = known ? to[known - from] : kind;
    *ret_len = 1;
    if (kind != 'u' || at + 6 > inside.len)
        return 2;
    unsigned code = hex4(inside.at + at + 2);
    bool pair = code >= 0xD800 && code < 0xDC00 && at + 12 <= inside.len;
    if (pair)
        code = 0x10000 + ((code - 0xD800) << 10) + (hex4(inside.at + at + 8) - 0xDC00);
    *ret_len = utf8_encode(code, out);
    return pair ? 12 : 6;
}

void doc_put(FILE *stream, struct doc value, size_t max) {
    bool string = doc_is_string(value);
    struct doc inside = string ? span(value, 1, value.len - 1) : value;
    size_t at = 0, len;
    char text[4];
    for (size_t shown = 0; at < inside.len && shown < max; shown++) {
        at += string ? decode(inside, at, text, &len) : (len = plain(inside, at, text));
        put_escaped(stream, text, len);
    }
    if (at < inside.len)
        fputs("...", stream);
}

static void new_line(FILE *stream, size_t depth) {
    fputc('\n', stream);
    for (size_t i = 0; i < depth; i++)
        fputs("  ", stream);
}

void doc_print(FILE *stream, struct doc value) {
    size_t depth = 0;
    for (size_t at = 0; at < value.len;) {
        char c = value.at[at];
        size_t next = skip_blanks(value, at + 1);
        if (c == '"') {
            size_t end = skip_string(value, at);
            fwrite(value.at + at, 1, end - at, stream);
            at = skip_blanks(value, end);
            continue;
        }
        bool closes = c == '}' || c == ']', opens = c == '{' || c == '[';
        if (closes)
            new_line(stream, --depth);
        fputc(c, stream);
        if (opens && next < value.len && (value.at[next] == '}' || value.at[next] == ']')) {
            fputc(value.at[next], stream); /* an empty one stays on its line */
            next = skip_blanks(value, next + 1);
        } else if (opens)
            new_line(stream, ++depth);
        else if (c == ',')
            new_line(stream, depth);
        else if (c == ':')
            fputc(' ', stream);
        at = next;
    }
    fputc('\n', stream);
}
