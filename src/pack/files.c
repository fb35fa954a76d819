/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/files.h"

#include "base/quote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_BYTES_MAX ((uint64_t)1 << 30)

/* Whether "..", which leads out of the folder, is among the parts of the path. */
static bool leaves(const char *path) {
    for (const char *part = path; *part;) {
        size_t len = strcspn(part, "/");
        if (len == 2 && !memcmp(part, "..", 2))
            return true;
        part += len + strspn(part + len, "/");
    }
    return *path == '/';
}

int files_path(const char *folder, const struct model_text *name, struct arena *arena, char **ret_path,
    struct ckpt_err *err) {
    struct quoted quoted;
    if (!name->len || memchr(name->text, 0, name->len) || leaves(name->text))
        return err_set(err, CKPT_E_INVAL, "%s is no path of a file below the folder",
            quote(&quoted, name->text, name->len));
    size_t above = strlen(folder);
    char *path = arena_alloc(arena, 1, above + name->len + 2);
    if (!path)
        return err_set(err, CKPT_E_NOMEM, "no memory for a path of %zu bytes", name->len);
    memcpy(path, folder, above);
    if (above && folder[above - 1] != '/')
        path[above++] = '/';
    memcpy(path + above, name->text, name->len);
    *ret_path = path;
    return 0;
}

bool files_exists(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

int files_data(const char *path, struct data *ret_data, struct ckpt_err *err) {
    struct stat st;
    if (stat(path, &st) < 0)
        return err_os(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, CKPT_E_INVAL, "%s is %s, not a regular file", path,
            S_ISDIR(st.st_mode) ? "a directory" : "a device, a FIFO or a socket");
    *ret_data = (struct data){.len = (uint64_t)st.st_size, .path = path, .file_bytes = (uint64_t)st.st_size};
    return 0;
}

int files_load(const char *path, struct buf *ret_text, struct ckpt_err *err) {
    struct data data;
    int rc = files_data(path, &data, err);
    if (rc)
        return rc;
    if (data.len > TEXT_BYTES_MAX)
        return err_set(err, CKPT_E_LIMIT, "%s has %" PRIu64 " bytes, at most %" PRIu64 " are read", path,
            data.len, TEXT_BYTES_MAX);
    struct buf text = {.bytes = malloc((size_t)data.len + 1), .cap = (size_t)data.len + 1};
    if (!text.bytes)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory for %" PRIu64 " bytes", path, data.len);
    rc = data_read(&data, 0, text.bytes, (size_t)data.len, err);
    text.len = (size_t)data.len;
    if (rc)
        buf_free(&text);
    else
        *ret_text = text;
    return rc;
}
