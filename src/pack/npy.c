/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A magic number, a version, a length, and a Python dictionary as text:
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 */
#include "pack/npy.h"

#include "base/ovf.h"
#include "base/quote.h"
#include "pack/files.h"

#include <inttypes.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define HEADER_MAX 65536 /* NumPy itself writes a few hundred bytes */
#define RANK_MAX 64      /* as NumPy */

struct header {
    char text[HEADER_MAX + 1]; /* and a NUL */
    const char *at;
    char descr[16];
    bool fortran;
    uint32_t rank;
    uint64_t shape[RANK_MAX];
    unsigned seen; /* bits of enum key */
};

enum key { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEYS = 7 };

/* ---- the dictionary -------------------------------------------------------------------------------------
 */

static bool take(struct header *header, const char *token) {
    header->at += strspn(header->at, " \n");
    size_t len = strlen(token);
    if (strncmp(header->at, token, len) != 0)
        return false;
    header->at += len;
    return true;
}

/* A Python string without escapes. */
static bool take_string(struct header *header, char *out, size_t cap) {
    const char *quote = take(header, "'") ? "'" : take(header, "\"") ? "\"" : NULL;
    size_t len = quote ? strcspn(header->at, "'\"\\\n") : cap;
    if (len >= cap)
        return false;
    memcpy(out, header->at, len);
    out[len] = '\0';
    header->at += len;
    return take(header, quote);
}

static bool take_extent(struct header *header) {
    uint64_t value = 0;
    size_t digits = strspn(header->at, "0123456789");
    if (!digits || header->rank == RANK_MAX)
        return false;
    for (size_t i = 0; i < digits; i++)
        if (!ovf_mul(value, 10, &value) || !ovf_add(value, (uint64_t)(header->at[i] - '0'), &value))
            return false;
    header->at += digits;
    header->shape[header->rank++] = value;
    return true;
}

static bool take_shape(struct header *header) {
    if (!take(header, "("))
        return false;
    while (!take(header, ")")) {
        if (!take_extent(header))
            return false;
        if (!take(header, ",") && *header->at != ')')
            return false;
        header->at += strspn(header->at, " ");
    }
    return true;
}

static bool take_order(struct header *header) {
    header->fortran = take(header, "True");
    return header->fortran || take(header, "False");
}

static bool take_member(struct header *header) {
    char name[16];
    if (!take_string(header, name, sizeof name) || !take(header, ":"))
        return false;
    enum key key = !strcmp(name, "descr")           ? KEY_DESCR
                   : !strcmp(name, "fortran_order") ? KEY_ORDER
                   : !strcmp(name, "shape")         ? KEY_SHAPE
                                                    : 0;
    if (!key || header->seen & key)
        return false;
    header->seen |= key;
    header->at += strspn(header->at, " ");
    return key == KEY_DESCR   ? take_string(header, header->descr, sizeof header->descr)
           : key == KEY_ORDER ? take_order(header)
                              : take_shape(header);
}

static bool parse(struct header *header) {
    header->at = header->text;
    if (!take(header, "{"))
        return false;
    while (!take(header, "}"))
        if (!take_member(header) || (!take(header, ",") && *header->at != '}'))
            return false;
    header->at += strspn(header->at, " \n");
    return !*header->at && header->seen == KEYS;
}

/* ---- the file -------------------------------------------------------------------------------------------
 */

/* Version 1 has a length of two bytes, the others one of four. */
static int load(const struct data *file, struct header *header, uint64_t *ret_start, struct ckpt_err *err) {
    uint8_t head[12];
    int rc = file->len < sizeof head ? 0 : data_read(file, 0, head, sizeof head, err);
    if (rc)
        return rc;
    if (file->len < sizeof head || memcmp(head, MAGIC, MAGIC_BYTES) != 0 || head[6] < 1 || head[6] > 3)
        return err_set(err, CKPT_E_INVAL, "%s is no .npy of version 1 to 3", file->path);
    uint64_t start = head[6] == 1 ? 10 : 12, len = head[8] | (uint64_t)head[9] << 8;
    if (head[6] > 1)
        len |= (uint64_t)head[10] << 16 | (uint64_t)head[11] << 24;
    if (len > HEADER_MAX || !ovf_inside(start, len, file->len))
        return err_set(err, CKPT_E_INVAL,
            "%s: a header of %" PRIu64 " bytes at %" PRIu64 ", the file has %" PRIu64, file->path, len, start,
            file->len);
    rc = data_read(file, start, header->text, (size_t)len, err);
    if (rc)
        return rc;
    header->text[len] = '\0';
    *ret_start = start + len;
    if (memchr(header->text, 0, (size_t)len) || !parse(header))
        return err_set(err, CKPT_E_INVAL, "%s: its header is not one of an array", file->path);
    return 0;
}

static int check(
    const struct header *header, const struct tensor *tensor, const char *path, struct ckpt_err *err) {
    struct quoted has, wants;
    const char *descr = dtype_table[tensor->dtype].descr;
    if (strcmp(header->descr, descr) != 0)
        return err_set(err, CKPT_E_INVAL, "%s holds %s, and %s is wanted: '%s'", path,
            quote(&has, header->descr, strlen(header->descr)), dtype_table[tensor->dtype].name, descr);
    if (header->fortran && tensor->rank > 1)
        return err_set(err, CKPT_E_INVAL, "%s is in Fortran order, and C order is wanted", path);
    if (header->rank != tensor->rank ||
        (header->rank && memcmp(header->shape, tensor->shape, header->rank * sizeof *header->shape) != 0))
        return err_set(err, CKPT_E_INVAL, "%s has the shape %s, and %s is wanted", path,
            quote_shape(&has, header->shape, header->rank), quote_shape(&wants, tensor->shape, tensor->rank));
    return 0;
}

int npy_data(const char *path, const struct tensor *tensor, struct data *ret_data, struct ckpt_err *err) {
    struct data data;
    struct header header = {0};
    uint64_t start = 0;
    if (tensor->encoding != ENCODING_DENSE || !dtype_table[tensor->dtype].descr)
        return err_set(err, CKPT_E_UNSUPPORTED, "%s cannot stand for the bytes of %s, %s", path,
            dtype_table[tensor->dtype].name, encoding_names[tensor->encoding]);
    int rc = files_data(path, &data, err);
    if (!rc)
        rc = load(&data, &header, &start, err);
    if (!rc)
        rc = check(&header, tensor, path, err);
    if (rc)
        return rc;
    data.off = start;
    data.len -= start;
    *ret_data = data;
    return 0;
}
