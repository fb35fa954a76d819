/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mistake.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define MAGIC(text) text, sizeof(text) - 1

static const struct magic {
    size_t at;
    const char *bytes;
    size_t len;
    const char *words;
} magics[] = {
    {0, MAGIC("version https://git-lfs"),
        "a Git LFS pointer, not the file itself: fetch it with `git lfs pull`"},
    {0, MAGIC("PK\3\4"), "a zip archive; PyTorch's .pt, .pth and .bin files are zip archives of pickles"},
    {0, MAGIC("GGUF"), "a GGUF file"},
    {0, MAGIC("\x89HDF\r\n\x1a\n"), "an HDF5 file, as Keras writes them"},
    {0, MAGIC("\x93NUMPY"), "a NumPy array (.npy)"},
    {0, MAGIC("\x1f\x8b"), "compressed with gzip: decompress it first"},
    {0,
        MAGIC("\xfd"
              "7zXZ\0"),
        "compressed with xz: decompress it first"},
    {0, MAGIC("\x28\xb5\x2f\xfd"), "compressed with zstd: decompress it first"},
    {0, MAGIC("BZh"), "compressed with bzip2: decompress it first"},
    {257, MAGIC("ustar"), "a tar archive: extract it first"},
};

/* Protocols 2 to 5; an opcode follows, never a NUL. */
static bool is_pickle(const uint8_t *head, size_t len) {
    return len >= 3 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 && head[2] != 0;
}

/* Whether the text after blanks (and a byte order mark) starts with prefix, in any case. */
static bool starts_with(const uint8_t *head, size_t len, const char *prefix) {
    size_t at = len >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < len && isspace(head[at]))
        at++;
    return len - at >= strlen(prefix) && !strncasecmp((const char *)head + at, prefix, strlen(prefix));
}

int mistake_check(const uint8_t *head, size_t head_len, struct ckpt_err *err) {
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const struct magic *magic = &magics[i];
        if (head_len >= magic->at + magic->len && !memcmp(head + magic->at, magic->bytes, magic->len))
            return err_set(err, CKPT_E_FORMAT, "not a checkpoint: %s", magic->words);
    }
    if (is_pickle(head, head_len))
        return err_set(err, CKPT_E_FORMAT, "not a checkpoint: a Python pickle, which is code, not data");
    if (starts_with(head, head_len, "<!doctype html") || starts_with(head, head_len, "<html"))
        return err_set(
            err, CKPT_E_FORMAT, "not a checkpoint: an HTML page, perhaps a download's error message");
    if (starts_with(head, head_len, "<?xml"))
        return err_set(
            err, CKPT_E_FORMAT, "not a checkpoint: an XML document, perhaps a download's error message");
    return 0;
}
