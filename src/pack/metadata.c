/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/metadata.h"

#include "base/json.h"
#include "base/ovf.h"
#include "base/quote.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static int no_memory(struct ckpt_err *err) {
    return err_set(err, CKPT_E_NOMEM, "no memory for metadata");
}

static bool grow(struct metadata *metadata) {
    if (metadata->count < metadata->cap)
        return true;
    size_t cap = metadata->cap ? 2 * metadata->cap : 16;
    struct ckpt_pair *pairs = reallocarray(metadata->pairs, cap, sizeof *pairs);
    if (!pairs)
        return false;
    metadata->pairs = pairs;
    metadata->cap = cap;
    return true;
}

int metadata_add(struct metadata *metadata, const char *key, size_t key_len, const char *value,
    size_t value_len, struct ckpt_err *err) {
    char *own_key = arena_text(&metadata->texts, key, key_len);
    char *own_value = arena_text(&metadata->texts, value, value_len);
    if (!own_key || !own_value || !grow(metadata))
        return no_memory(err);
    metadata->pairs[metadata->count++] = (struct ckpt_pair){own_key, key_len, own_value, value_len};
    return 0;
}

void metadata_free(struct metadata *metadata) {
    free(metadata->pairs);
    arena_free(&metadata->texts);
    *metadata = (struct metadata){0};
}

const struct ckpt_pair *metadata_find(const struct metadata *metadata, const char *key) {
    for (size_t i = 0; i < metadata->count; i++)
        if (metadata->pairs[i].key_len == strlen(key) && !strcmp(metadata->pairs[i].key, key))
            return &metadata->pairs[i];
    return NULL;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static int read_value(struct metadata *metadata, struct metadata *others, struct json *json,
    const struct buf *key, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event == JSON_STRING)
        return metadata_add(metadata, key->bytes, key->len, json->value, json->value_len, err);
    size_t start = json_token(json);
    if (json_skip(json, event) == JSON_ERROR)
        return 0; /* which the next event says again */
    return metadata_add(others, key->bytes, key->len, json->text + start, json_offset(json) - start, err);
}

/* The decoded key does not outlive the value's event. */
static int read_members(
    struct metadata *metadata, struct metadata *others, struct json *json, struct ckpt_err *err) {
    struct buf key = {0};
    enum json_event event;
    int rc = 0;
    while (!rc && (event = json_next(json)) == JSON_KEY) {
        buf_clear(&key);
        buf_put(&key, json->value, json->value_len);
        rc = buf_cstr(&key) ? read_value(metadata, others, json, &key, err) : no_memory(err);
    }
    buf_free(&key);
    if (!rc && event == JSON_ERROR)
        rc = json_no_memory(json, err);
    if (!rc && event == JSON_ERROR)
        rc = err_set(err, CKPT_E_CORRUPT, "metadata: offset %zu: %s", json_offset(json), json->error);
    return rc;
}

int metadata_read(
    struct metadata *metadata, const char *text, size_t len, struct metadata *others, struct ckpt_err *err) {
    struct metadata fresh = {0};
    struct json json;
    json_start(&json, text, len);
    int rc = json_next(&json) == JSON_OBJECT ? read_members(&fresh, others ? others : &fresh, &json, err) : 0;
    json_stop(&json);
    if (!rc)
        rc = metadata_settle(&fresh, NULL, NULL, err);
    for (size_t i = 0; !rc && i < fresh.count; i++) {
        const struct ckpt_pair *pair = &fresh.pairs[i];
        rc = metadata_add(metadata, pair->key, pair->key_len, pair->value, pair->value_len, err);
    }
    metadata_free(&fresh);
    return rc;
}

/* ---- repeated keys ------------------------------------------------------------------------------------- */

static int compare_texts(const char *a, size_t a_len, const char *b, size_t b_len) {
    int order = memcmp(a, b, ovf_min(a_len, b_len));
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static bool same_key(const struct ckpt_pair *a, const struct ckpt_pair *b) {
    return !compare_texts(a->key, a->key_len, b->key, b->key_len);
}

/* By key, then by place: the pairs themselves stay where they are. */
static int compare(const void *left, const void *right) {
    const struct ckpt_pair *a = *(const struct ckpt_pair *const *)left,
                           *b = *(const struct ckpt_pair *const *)right;
    int order = compare_texts(a->key, a->key_len, b->key, b->key_len);
    return order ? order : (a > b) - (a < b);
}

static const struct ckpt_pair **sorted(const struct ckpt_pair *pairs, size_t count) {
    const struct ckpt_pair **order = reallocarray(NULL, count + 1, sizeof *order);
    if (!order)
        return NULL;
    for (size_t i = 0; i < count; i++)
        order[i] = &pairs[i];
    qsort(order, count, sizeof *order, compare);
    return order;
}

/* Marks order[from..] of one key, but the last one, as dropped; returns where the next key starts. */
static size_t settle_key(
    struct metadata *metadata, const struct ckpt_pair **order, size_t from, bool *ret_differ, bool *dropped) {
    size_t last = from;
    while (last + 1 < metadata->count && same_key(order[from], order[last + 1]))
        last++;
    *ret_differ = false;
    for (size_t i = from; i < last; i++) {
        dropped[order[i] - metadata->pairs] = true;
        *ret_differ |= compare_texts(order[i]->value, order[i]->value_len, order[last]->value,
                           order[last]->value_len) != 0;
    }
    return last + 1;
}

static void drop(struct metadata *metadata, const bool *dropped) {
    size_t kept = 0;
    for (size_t i = 0; i < metadata->count; i++)
        if (!dropped[i])
            metadata->pairs[kept++] = metadata->pairs[i];
    metadata->count = kept;
}

int metadata_settle(struct metadata *metadata, metadata_differ *differ, void *arg, struct ckpt_err *err) {
    const struct ckpt_pair **order = sorted(metadata->pairs, metadata->count);
    bool *dropped = calloc(metadata->count + 1, sizeof *dropped), differs;
    int rc = order && dropped ? 0 : no_memory(err);
    for (size_t at = 0, next; !rc && at < metadata->count; at = next) {
        next = settle_key(metadata, order, at, &differs, dropped);
        if (differs && differ)
            rc = differ(arg, order[next - 1], err);
    }
    if (!rc)
        drop(metadata, dropped);
    free(order);
    free(dropped);
    return rc;
}

/* ---- pairs --------------------------------------------------------------------------------------------- */

static int check_texts(const struct ckpt_pair *pair, struct ckpt_err *err) {
    struct quoted key;
    quote(&key, pair->key, pair->key_len);
    if (!text_is_utf8(pair->key, pair->key_len))
        return err_set(err, CKPT_E_INVAL, "metadata key %s is not UTF-8", key.text);
    if (!text_is_utf8(pair->value, pair->value_len))
        return err_set(err, CKPT_E_INVAL, "metadata %s: the value is not UTF-8", key.text);
    return 0;
}

int pairs_check(const struct ckpt_pair *pairs, size_t count, struct ckpt_err *err) {
    for (size_t i = 0; i < count; i++) {
        int rc = check_texts(&pairs[i], err);
        if (rc)
            return rc;
    }
    const struct ckpt_pair **order = sorted(pairs, count);
    struct quoted key;
    int rc = order ? 0 : no_memory(err);
    for (size_t i = 1; !rc && i < count; i++)
        if (same_key(order[i - 1], order[i]))
            rc = err_set(err, CKPT_E_INVAL, "metadata key %s is there twice",
                quote(&key, order[i]->key, order[i]->key_len));
    free(order);
    return rc;
}

void pairs_put(struct buf *buf, const struct ckpt_pair *pairs, size_t count) {
    buf_putc(buf, '{');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_putc(buf, ',');
        json_put_string(buf, pairs[i].key, pairs[i].key_len);
        buf_putc(buf, ':');
        json_put_string(buf, pairs[i].value, pairs[i].value_len);
    }
    buf_putc(buf, '}');
}

static char *copy_text(char **at, const char *text, size_t len) {
    char *copy = *at;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *at += len + 1;
    return copy;
}

int pairs_copy(
    const struct ckpt_pair *pairs, size_t count, struct ckpt_pair **ret_pairs, struct ckpt_err *err) {
    size_t bytes = (count + 1) * sizeof *pairs; /* all of it is in memory already: no overflow */
    for (size_t i = 0; i < count; i++)
        bytes += pairs[i].key_len + pairs[i].value_len + 2;
    struct ckpt_pair *copy = malloc(bytes);
    if (!copy)
        return no_memory(err);
    char *at = (char *)(copy + count);
    for (size_t i = 0; i < count; i++)
        copy[i] = (struct ckpt_pair){
            .key = copy_text(&at, pairs[i].key, pairs[i].key_len),
            .key_len = pairs[i].key_len,
            .value = copy_text(&at, pairs[i].value, pairs[i].value_len),
            .value_len = pairs[i].value_len,
        };
    *ret_pairs = copy;
    return 0;
}
