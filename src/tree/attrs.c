/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes: what a tensor is, and whether the bytes behind a file have been verified. */
#include "base/put.h"
#include "tree/inside.h"

#include <string.h>

#define PREFIX "user.ckptfs."

static bool is_tensor(const struct ref *ref) {
    return ref->content == CONTENT_NPY || ref->content == CONTENT_RAW;
}

static bool shows_source(const struct ref *ref) {
    return is_tensor(ref) || ref->content == CONTENT_BLOB || ref->content == CONTENT_PAYLOAD ||
           ref->content == CONTENT_CHUNK;
}

/* ---- values -----------------------------------------------------------------------------------------------
 */

static void put_name(struct tree *tree, const struct ref *ref, struct buf *buf) {
    const struct tensor *tensor = tree_tensor(tree, ref);
    buf_put(buf, tensor->name, tensor->name_len);
}

static void put_dtype(struct tree *tree, const struct ref *ref, struct buf *buf) {
    buf_puts(buf, dtype_table[tree_tensor(tree, ref)->dtype].name);
}

static void put_shape(struct tree *tree, const struct ref *ref, struct buf *buf) {
    const struct tensor *tensor = tree_tensor(tree, ref);
    buf_putc(buf, '[');
    put_list(buf, tensor->shape, tensor->rank, ", ");
    buf_putc(buf, ']');
}

static void put_encoding(struct tree *tree, const struct ref *ref, struct buf *buf) {
    buf_puts(buf, encoding_names[tree_tensor(tree, ref)->encoding]);
}

/* A file stands or falls with its bytes and with what named it. The head of a bare .oam lies in no unit, so
 * it only counts where it is known to be corrupt. */
static enum unit_state state_of(struct tree *tree, const struct ref *ref) {
    struct range vouch[2] = {{0}}, range = tree_range(tree, ref);
    tree_vouchers(tree, ref, vouch);
    enum unit_state head = vouch[0].len ? guard_range_state(tree->guard, vouch[0]) : UNIT_VERIFIED;
    enum unit_state index = guard_range_state(tree->guard, vouch[1]),
                    data = guard_range_state(tree->guard, range);
    if (head == UNIT_CORRUPT || index == UNIT_CORRUPT || data == UNIT_CORRUPT)
        return UNIT_CORRUPT;
    return index == UNIT_UNKNOWN || data == UNIT_UNKNOWN ? UNIT_UNKNOWN : UNIT_VERIFIED;
}

static void put_verified(struct tree *tree, const struct ref *ref, struct buf *buf) {
    static const char *const states[] = {
        [UNIT_UNKNOWN] = "no", [UNIT_VERIFIED] = "yes", [UNIT_CORRUPT] = "corrupt"};
    if (!tree->catalog->units.count || guard_mode(tree->guard) == CKPT_VERIFY_OFF)
        buf_puts(buf, "none");
    else
        buf_puts(buf, states[state_of(tree, ref)]);
}

static const struct attribute {
    const char *name;
    bool (*applies)(const struct ref *ref);
    void (*put)(struct tree *tree, const struct ref *ref, struct buf *buf);
} attributes[] = {
    {PREFIX "name", is_tensor, put_name},
    {PREFIX "dtype", is_tensor, put_dtype},
    {PREFIX "shape", is_tensor, put_shape},
    {PREFIX "encoding", is_tensor, put_encoding},
    {PREFIX "verified", shows_source, put_verified},
};

#define ATTRIBUTES (sizeof attributes / sizeof *attributes)

/* ---- asking -----------------------------------------------------------------------------------------------
 */

/* Hands the buffer's content out as getxattr does, and frees it. */
static int hand_out(struct buf *from, char *buf, size_t cap, size_t *ret_len, struct ckpt_err *err) {
    size_t len = from->len;
    int rc = 0;
    if (from->failed)
        rc = err_set(err, CKPT_E_NOMEM, "no memory for an attribute");
    else if (cap && cap < len)
        rc = err_set(err, CKPT_E_LIMIT, "an attribute of %zu bytes, room for %zu", len, cap);
    else if (cap && len)
        memcpy(buf, from->bytes, len);
    buf_free(from);
    if (!rc)
        *ret_len = len;
    return rc;
}

int tree_xattr_get(struct tree *tree, uint64_t ino, const char *name, char *buf, size_t cap, size_t *ret_len,
    struct ckpt_err *err) {
    struct ref ref;
    int rc = tree_ref(tree, ino, &ref, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < ATTRIBUTES; i++) {
        if (strcmp(attributes[i].name, name) != 0 || !attributes[i].applies(&ref))
            continue;
        struct buf value = {0};
        attributes[i].put(tree, &ref, &value);
        return hand_out(&value, buf, cap, ret_len, err);
    }
    return err_set(err, CKPT_E_NOENT, "no attribute '%.200s' on inode %llu", name, (unsigned long long)ino);
}

int tree_xattr_list(
    struct tree *tree, uint64_t ino, char *buf, size_t cap, size_t *ret_len, struct ckpt_err *err) {
    struct ref ref;
    int rc = tree_ref(tree, ino, &ref, err);
    if (rc)
        return rc;
    struct buf names = {0};
    for (size_t i = 0; i < ATTRIBUTES; i++)
        if (attributes[i].applies(&ref))
            buf_put(&names, attributes[i].name, strlen(attributes[i].name) + 1);
    return hand_out(&names, buf, cap, ret_len, err);
}
