/* SPDX-License-Identifier: Apache-2.0 */
#include "format/object.h"

#include "base/ovf.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES ((size_t)1 << 20) /* of one read */

int object_load(struct source *source, uint64_t off, size_t len, char **ret_text, struct ckpt_err *err) {
    char *text = malloc(len ? len : 1);
    if (!text)
        return err_set(err, CKPT_E_NOMEM, "no memory for %zu bytes of text", len);
    for (size_t at = 0, piece; at < len; at += piece) {
        piece = (size_t)ovf_min(len - at, PIECE_BYTES);
        int rc = source_read(source, off + at, text + at, piece, err);
        if (rc) {
            free(text);
            return rc;
        }
    }
    *ret_text = text;
    return 0;
}

/* ---- keys ------------------------------------------------------------------------------------------- */

struct key {
    uint32_t hash, off, len; /* off past the text's end: in decoded */
};

static uint32_t key_hash(const char *key, size_t len) {
    uint32_t hash = 0x811c9dc5u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)key[i]) * 0x01000193u;
    return hash;
}

static const char *key_text(const struct keys *keys, const struct key *key) {
    return key->off < keys->len ? keys->text + key->off : keys->decoded.bytes + (key->off - keys->len);
}

static int key_compare(const void *a, const void *b, void *arg) {
    const struct key *left = a, *right = b;
    if (left->hash != right->hash)
        return left->hash < right->hash ? -1 : 1;
    if (left->len != right->len)
        return left->len < right->len ? -1 : 1;
    return left->len ? memcmp(key_text(arg, left), key_text(arg, right), left->len) : 0;
}

void keys_start(struct keys *keys, const char *text, size_t len) {
    *keys = (struct keys){.text = text, .len = len};
}

static bool keys_room(struct keys *keys) {
    if (keys->count < keys->cap)
        return true;
    size_t cap = keys->cap ? keys->cap * 2 : 16;
    struct key *list = realloc(keys->list, cap * sizeof *list);
    if (!list)
        return false;
    keys->list = list;
    keys->cap = cap;
    return true;
}

bool keys_add(struct keys *keys, const struct json *json) {
    if (!keys_room(keys))
        return false;
    uintptr_t start = (uintptr_t)keys->text, value = (uintptr_t)json->value;
    size_t off = json->value_len ? value - start : 0;
    if (off >= keys->len) { /* decoded, in memory that the reader's next call reuses */
        off = keys->len + keys->decoded.len;
        buf_put(&keys->decoded, json->value, json->value_len);
    }
    keys->list[keys->count++] = (struct key){.hash = key_hash(json->value, json->value_len),
        .off = (uint32_t)off,
        .len = (uint32_t)json->value_len};
    return !keys->decoded.failed;
}

bool keys_repeated(struct keys *keys, const char **ret_key, size_t *ret_len) {
    if (keys->count < 2)
        return false;
    qsort_r(keys->list, keys->count, sizeof *keys->list, key_compare, keys);
    for (size_t i = 1; i < keys->count; i++) {
        if (key_compare(&keys->list[i - 1], &keys->list[i], keys))
            continue;
        *ret_key = key_text(keys, &keys->list[i]);
        *ret_len = keys->list[i].len;
        return true;
    }
    return false;
}

void keys_clear(struct keys *keys) {
    keys->count = 0;
    buf_clear(&keys->decoded);
}

void keys_free(struct keys *keys) {
    free(keys->list);
    buf_free(&keys->decoded);
    *keys = (struct keys){0};
}

/* ---- survey ----------------------------------------------------------------------------------------- */

static int malformed(const struct json *json, const char *what, struct ckpt_err *err) {
    int rc = json_no_memory(json, err);
    if (rc)
        return err_wrap(err, rc, "%s", what);
    return err_set(
        err, CKPT_E_CORRUPT, "%s is not JSON: %s at byte %zu", what, json->error, json_offset(json));
}

static int survey(
    struct json *json, struct keys *keys, const char *what, bool *ret_repeated, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event != JSON_OBJECT && json_skip(json, event) != JSON_ERROR)
        return err_set(err, CKPT_E_CORRUPT, "%s is JSON, but not an object", what);
    while (event != JSON_ERROR && (event = json_next(json)) == JSON_KEY) {
        if (!keys_add(keys, json))
            return err_set(err, CKPT_E_NOMEM, "no memory for %zu keys", keys->count);
        event = json_skip(json, json_next(json));
    }
    if (event == JSON_ERROR || json_next(json) != JSON_END)
        return malformed(json, what, err);
    const char *key;
    size_t len;
    struct quoted quoted;
    bool repeated = keys_repeated(keys, &key, &len);
    if (repeated && !ret_repeated)
        return err_set(err, CKPT_E_CORRUPT, "%s holds the key %s twice", what, quote(&quoted, key, len));
    if (ret_repeated)
        *ret_repeated = repeated;
    return 0;
}

int object_survey(const char *text, size_t len, const char *what, unsigned depth_max, uint64_t *ret_members,
    bool *ret_repeated, struct ckpt_err *err) {
    struct json json;
    struct keys keys;
    json_start(&json, text, len);
    json.depth_max = depth_max;
    keys_start(&keys, text, len);
    int rc = survey(&json, &keys, what, ret_repeated, err);
    if (!rc)
        *ret_members = keys.count;
    keys_free(&keys);
    json_stop(&json);
    return rc;
}
