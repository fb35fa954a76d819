/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/members.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static bool same_bytes(const char *a, size_t a_len, const char *b, size_t b_len) {
    return a_len == b_len && (!a_len || !memcmp(a, b, a_len));
}

bool members_same(const struct member *a, const struct member *b) {
    if (a->text && b->text)
        return same_bytes(a->text, a->text_len, b->text, b->text_len);
    return same_bytes(a->json, a->json_len, b->json, b->json_len);
}

int members_order(const struct member *a, const struct member *b) {
    size_t common = a->key_len < b->key_len ? a->key_len : b->key_len;
    int order = memcmp(a->key, b->key, common);
    return order ? order : (a->key_len > b->key_len) - (a->key_len < b->key_len);
}

/* Of one key, the one that stands first in the text. */
static int by_key_and_place(const void *left, const void *right) {
    const struct member *a = left, *b = right;
    int order = members_order(a, b);
    return order ? order : (a->json > b->json) - (a->json < b->json);
}

static void keep_the_last(struct members *members) {
    size_t kept = 0;
    for (size_t i = 0; i < members->count; i++) {
        bool again = i + 1 < members->count && members_order(&members->items[i], &members->items[i + 1]) == 0;
        if (!again)
            members->items[kept++] = members->items[i];
    }
    members->count = kept;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

struct reading {
    struct json json;
    struct arena *arena;
    struct members members;
    size_t cap;
};

static struct member *next_slot(struct reading *reading) {
    struct members *members = &reading->members;
    if (members->count == reading->cap) {
        size_t cap = reading->cap ? 2 * reading->cap : 16;
        struct member *items = reallocarray(members->items, cap, sizeof *items);
        if (!items)
            return NULL;
        members->items = items;
        reading->cap = cap;
    }
    members->items[members->count] = (struct member){0};
    return &members->items[members->count];
}

/* The member whose key was just read: 0, or NOMEM; *ret_event is JSON_ERROR when its value is malformed. */
static int read_member(struct reading *reading, enum json_event *ret_event) {
    struct json *json = &reading->json;
    struct member *member = next_slot(reading);
    if (!member)
        return CKPT_E_NOMEM;
    member->key_len = json->value_len;
    member->key = arena_text(reading->arena, json->value, json->value_len);
    enum json_event event = json_next(json);
    size_t start = json_token(json);
    if (event == JSON_STRING) {
        member->text_len = json->value_len;
        member->text = arena_text(reading->arena, json->value, json->value_len);
    }
    *ret_event = json_skip(json, event);
    member->json = json->text + start;
    member->json_len = json_offset(json) - start;
    reading->members.count++;
    return member->key && (member->text || event != JSON_STRING) ? 0 : CKPT_E_NOMEM;
}

static int read_all(struct reading *reading) {
    enum json_event event = json_next(&reading->json);
    int rc = 0;
    if (event != JSON_OBJECT)
        return json_no_memory(&reading->json, NULL);
    while (!rc && (event = json_next(&reading->json)) == JSON_KEY) {
        rc = read_member(reading, &event);
        if (event == JSON_ERROR)
            break;
    }
    reading->members.is_object = event == JSON_OBJECT_END;
    return rc ? rc : json_no_memory(&reading->json, NULL);
}

int members_read(
    const char *json, size_t len, struct arena *arena, struct members *ret_members, struct ckpt_err *err) {
    struct reading reading = {.arena = arena};
    json_start(&reading.json, json, len);
    reading.json.lone_surrogates = true;
    int rc = read_all(&reading);
    json_stop(&reading.json);
    if (rc) {
        members_free(&reading.members);
        return err_set(err, rc, "no memory for the members of a document of %zu bytes", len);
    }
    if (!reading.members.is_object)
        reading.members.count = 0;
    if (reading.members.count)
        qsort(reading.members.items, reading.members.count, sizeof *reading.members.items, by_key_and_place);
    keep_the_last(&reading.members);
    *ret_members = reading.members;
    return 0;
}

void members_free(struct members *members) {
    free(members->items);
    *members = (struct members){0};
}
