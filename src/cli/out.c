/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/out.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* ---- messages ---------------------------------------------------------------------------------------- */

void complain(const char *file, const char *fmt, ...) {
    char text[1536];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    fputs(PROGRAM ": ", stderr);
    if (file) {
        put_escaped(stderr, file, strlen(file));
        fputs(": ", stderr);
    }
    put_escaped(stderr, text, strlen(text));
    fputc('\n', stderr);
}

int exit_code_of(int code) {
    switch (code) {
    case 0:
        return EXIT_FINE;
    case CKPT_E_INVAL:
        return EXIT_USAGE;
    case CKPT_E_FORMAT:
    case CKPT_E_CORRUPT:
    case CKPT_E_MISMATCH:
        return EXIT_CORRUPT;
    case CKPT_E_INTR:
        return EXIT_SIGNAL + SIGINT;
    default:
        return EXIT_SYSTEM;
    }
}

/* The message without the name of the file, which errors of the system begin with ("open FILE: ..."): they
 * may be about a shard as well. */
static const char *without_name(const char *msg, const char *file) {
    const char *name = strncmp(msg, "open ", 5) ? msg : msg + 5;
    size_t len = strlen(file);
    return !strncmp(name, file, len) && !strncmp(name + len, ": ", 2) ? name + len + 2 : msg;
}

int complain_err(const char *file, const struct ckpt_err *err) {
    complain(file, "%s", file ? without_name(err->msg, file) : err->msg);
    return exit_code_of(err->code);
}

int complain_stdout(int os_errno) {
    complain(NULL, "standard output: %s", strerror(os_errno));
    return EXIT_SYSTEM;
}

int flush_stdout(void) {
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout))
        return EXIT_FINE;
    clearerr(stdout);
    return complain_stdout(errno ? errno : EIO);
}

/* ---- bytes ------------------------------------------------------------------------------------------- */

int write_all(const void *bytes, size_t len) {
    const char *at = bytes;
    while (len) { /* EINTR ends it: the only signals with a handler are those that ask to stop */
        ssize_t wrote = write(STDOUT_FILENO, at, len);
        if (wrote <= 0)
            return wrote ? errno : EIO;
        at += wrote;
        len -= (size_t)wrote;
    }
    return 0;
}

/* ---- text from files --------------------------------------------------------------------------------- */

static bool is_control(const unsigned char *at, size_t left) {
    bool c1 = left > 1 && at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0;
    return at[0] < 0x20 || at[0] == 0x7F || c1;
}

void put_escaped(FILE *stream, const char *text, size_t len) {
    const unsigned char *at = (const unsigned char *)text;
    for (size_t i = 0; i < len; i++) {
        if (!is_control(at + i, len - i))
            fputc(at[i], stream);
        else if (at[i] == 0xC2) {
            fprintf(stream, "\\%03o\\%03o", at[i], at[i + 1]);
            i++;
        } else
            fprintf(stream, "\\%03o", at[i]);
    }
}

void put_name(FILE *stream, const char *text) {
    if (isatty(fileno(stream)))
        put_escaped(stream, text, strlen(text));
    else
        fputs(text, stream);
}

/* Length of the well-formed UTF-8 sequence at `at` (the text ends with a NUL), 0 when there is none. */
static size_t utf8_len(const unsigned char *at) {
    unsigned char low = 0x80, high = 0xBF;
    size_t len = at[0] < 0x80 ? 1 : at[0] >= 0xC2 && at[0] < 0xE0 ? 2 : at[0] >= 0xE0 && at[0] < 0xF0 ? 3 : 4;
    if (len == 4 && (at[0] < 0xF0 || at[0] > 0xF4))
        return 0;
    if (at[0] == 0xE0)
        low = 0xA0;
    else if (at[0] == 0xED)
        high = 0x9F;
    else if (at[0] == 0xF0)
        low = 0x90;
    else if (at[0] == 0xF4)
        high = 0x8F;
    for (size_t i = 1; i < len; i++, low = 0x80, high = 0xBF)
        if (at[i] < low || at[i] > high)
            return 0;
    return len;
}

void put_json_string(FILE *stream, const char *text) {
    put_json_text(stream, text, strlen(text));
}

void put_json_text(FILE *stream, const char *text, size_t text_len) {
    const unsigned char *at = (const unsigned char *)text, *end = at + text_len;
    fputc('"', stream);
    while (at < end) {
        size_t len = utf8_len(at);
        if (*at == '"' || *at == '\\')
            fprintf(stream, "\\%c", *at);
        else if (is_control(at, len))
            fprintf(stream, "\\u%04x", len == 2 ? at[1] : at[0]);
        else if (len)
            fwrite(at, 1, len, stream);
        else
            fputs("\xEF\xBF\xBD", stream);
        at += len ? len : 1;
    }
    fputc('"', stream);
}

/* ---- numbers ----------------------------------------------------------------------------------------- */

const char *count_text(uint64_t count, char out[COUNT_MAX]) {
    char digits[24];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, count), to = 0;
    for (size_t i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out[to++] = ',';
        out[to++] = digits[i];
    }
    out[to] = '\0';
    return out;
}

const char *bytes_text(uint64_t bytes, char out[COUNT_MAX]) {
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int unit = -1;
    /* 999.5 would be rounded to 1000 */
    for (; value >= 999.5 && unit < 5; unit++)
        value /= 1000;
    if (unit < 0)
        snprintf(out, COUNT_MAX, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
    else
        snprintf(out, COUNT_MAX, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[unit]);
    return out;
}
