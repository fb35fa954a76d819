/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/convert_order.h"

#include "base/json.h"
#include "base/ovf.h"

#include <stdlib.h>
#include <string.h>

/* A tensor by its name, and whether it has its place already. */
struct named {
    const struct model_tensor *item;
    bool placed;
};

struct order {
    struct named *names; /* sorted */
    uint64_t count;
    struct model_tensor *placed;
    uint64_t placed_count;
};

static int compare(const void *left, const void *right) {
    const struct tensor *a = &((const struct named *)left)->item->tensor,
                        *b = &((const struct named *)right)->item->tensor;
    int order = memcmp(a->name, b->name, ovf_min(a->name_len, b->name_len));
    return order ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static void place(struct order *order, struct named *named) {
    if (named->placed)
        return;
    named->placed = true;
    order->placed[order->placed_count++] = *named->item;
}

static void place_name(struct order *order, const struct json *json) {
    const struct model_tensor wanted = {
        .tensor = {.name = json->value, .name_len = (uint32_t)ovf_min(json->value_len, UINT32_MAX)}};
    const struct named key = {.item = &wanted};
    struct named *found = bsearch(&key, order->names, order->count, sizeof key, compare);
    if (found)
        place(order, found);
}

static int place_names(struct order *order, struct json *json, struct ckpt_err *err) {
    enum json_event event = json_next(json);
    if (event == JSON_ARRAY)
        while ((event = json_next(json)) == JSON_STRING)
            place_name(order, json);
    bool whole = event == JSON_ARRAY_END && json_next(json) == JSON_END;
    int rc = json_no_memory(json, err);
    return rc || whole ? rc : err_set(err, CKPT_E_INVAL, "it is not a JSON array of names");
}

/* By name, the rest stands in another order than in the file: so by place. */
static void place_rest(struct order *order, const struct model_tensors *tensors) {
    for (uint64_t i = 0; i < tensors->count && order->placed_count < tensors->count; i++) {
        const struct named key = {.item = &tensors->items[i]};
        place(order, bsearch(&key, order->names, order->count, sizeof key, compare));
    }
}

static int fill(
    struct order *order, struct model_tensors *tensors, const char *text, size_t len, struct ckpt_err *err) {
    struct json json;
    for (uint64_t i = 0; i < tensors->count; i++)
        order->names[i] = (struct named){.item = &tensors->items[i]};
    qsort(order->names, order->count, sizeof *order->names, compare);
    json_start(&json, text, len);
    int rc = place_names(order, &json, err);
    json_stop(&json);
    if (rc)
        return rc;
    place_rest(order, tensors);
    memcpy(tensors->items, order->placed, tensors->count * sizeof *tensors->items);
    return 0;
}

int convert_order(struct model_tensors *tensors, const char *json, size_t len, struct ckpt_err *err) {
    struct order order = {.count = tensors->count};
    order.names = reallocarray(NULL, tensors->count + 1, sizeof *order.names);
    order.placed = reallocarray(NULL, tensors->count + 1, sizeof *order.placed);
    int rc = order.names && order.placed ? fill(&order, tensors, json, len, err)
                                         : err_set(err, CKPT_E_NOMEM, "no memory for an order");
    free(order.names);
    free(order.placed);
    return rc;
}
