/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/put.h"
#include "tree/names.h"
#include "tree/tree.h"
#include "tree/views.h"

#include <string.h>

/* ---- tensors.json: one tensor a line ------------------------------------------------------------------ */

static void put_member(struct buf *buf, const char *name, const char *text) {
    buf_puts(buf, name);
    buf_putc(buf, '"');
    buf_puts(buf, text);
    buf_putc(buf, '"');
}

static void put_number(struct buf *buf, const char *name, uint64_t value) {
    buf_puts(buf, name);
    put_u64(buf, value);
}

static void put_path(struct buf *buf, const char *folder, const struct tensor *tensor, const char *suffix) {
    char path[32 + CKPT_NAME_MAX + 1];
    size_t at = strlen(folder);
    memcpy(path, folder, at);
    tree_file_name(tensor->name, tensor->name_len, suffix, path + at);
    json_put_string(buf, path, at + strlen(path + at));
}

static void put_tensor(
    struct buf *buf, const struct catalog *catalog, enum group_kind group, uint64_t index) {
    const struct tensor *tensor = &catalog->groups[group].items[index];
    json_put_string(buf, tensor->name, tensor->name_len);
    put_member(buf, ": {\"dtype\": ", dtype_table[tensor->dtype].name);
    buf_puts(buf, ", \"shape\": [");
    put_list(buf, tensor->shape, tensor->rank, ", ");
    put_member(buf, "], \"encoding\": ", encoding_names[tensor->encoding]);
    put_number(buf, ", \"block_size\": ", tensor->block);
    put_number(buf, ", \"elements\": ", tensor->elements);
    put_number(buf, ", \"bytes\": ", tensor->size);
    put_number(buf, ", \"offset\": ", tensor->offset);
    buf_puts(buf, ", \"npy\": ");
    if (npy_exists(tensor))
        put_path(buf, group == GROUP_STATE ? "state/" : "tensors/", tensor, ".npy");
    else
        buf_puts(buf, "null");
    buf_puts(buf, ", \"raw\": ");
    put_path(buf, group == GROUP_STATE ? "raw/state/" : "raw/tensors/", tensor, ".bin");
    if (catalog->sharded) {
        buf_puts(buf, ", \"shard\": ");
        const char *shard = catalog->parts[tensor->part].name;
        json_put_string(buf, shard, strlen(shard));
    }
    buf_puts(buf, index + 1 < catalog->groups[group].count ? "},\n" : "}\n");
}

/* An opening line, the tensors, a line between, the state tensors, a closing line. */
static void render_tensors(const struct rows *rows, uint64_t index, struct buf *buf) {
    const struct catalog *catalog = rows->arg;
    uint64_t middle = catalog->groups[GROUP_TENSORS].count + 1;
    if (index == 0)
        buf_puts(buf, "{\"tensors\": {\n");
    else if (index < middle)
        put_tensor(buf, catalog, GROUP_TENSORS, index - 1);
    else if (index == middle)
        buf_puts(buf, "}, \"state\": {\n");
    else if (index + 1 < rows->count)
        put_tensor(buf, catalog, GROUP_STATE, index - middle - 1);
    else
        buf_puts(buf, "}}\n");
}

int rows_tensors_json(const struct catalog *catalog, struct rows *ret_rows, struct ckpt_err *err) {
    struct rows rows = {.render = render_tensors, .arg = catalog};
    rows.count = catalog->groups[GROUP_TENSORS].count + catalog->groups[GROUP_STATE].count + 3;
    int rc = rows_measure(&rows, err);
    if (!rc)
        *ret_rows = rows;
    return rc;
}

/* ---- SHA256SUMS: rows of one width, but for the digits of a chunk number past 10^8 --------------------- */

#define SUM_ROW_BYTES 86 /* 64 digits, two blanks, "chunks/00000000.bin", newline */

static uint64_t sum_start(uint64_t index) {
    uint64_t start = index * SUM_ROW_BYTES;
    for (uint64_t wider = 100000000; wider < index; wider *= 10)
        start += index - wider;
    return start;
}

static void render_sum(const struct rows *rows, uint64_t index, struct buf *buf) {
    const struct catalog *catalog = rows->arg;
    struct unit unit = unit_get(&catalog->units, index);
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < sizeof unit.digest; i++) {
        buf_putc(buf, digits[unit.digest[i] >> 4]);
        buf_putc(buf, digits[unit.digest[i] & 15]);
    }
    buf_printf(buf, "  chunks/%08llu.bin\n", (unsigned long long)index);
}

struct rows rows_sums(const struct catalog *catalog) {
    return (struct rows){
        .count = catalog->envelope->chunk_count, .start_of = sum_start, .render = render_sum, .arg = catalog};
}
