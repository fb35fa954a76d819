/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a header's text to tensors, in two walks: the first one knows JSON and keys only, so that the second
 * knows how many tensors there are and never meets malformed text.
 */
#include "base/quote.h"
#include "format/object.h"
#include "format/safetensors.h"
#include "format/safetensors_layout.h"

#include <inttypes.h>
#include <string.h>

struct walk {
    struct json json;
    struct keys keys; /* of the object that is being walked over, below the top */
    const char *text;
    struct arena *arena;
    struct safetensors *file;
    struct quoted name;                     /* of the tensor at hand, for messages */
    uint64_t numbers[SAFETENSORS_RANK_MAX]; /* the array that was read last */
    uint32_t number_count;
};

static int no_memory(struct ckpt_err *err) {
    return err_set(err, CKPT_E_NOMEM, "no memory for the tensors");
}

/* The next key of the object: 1, 0 at the object's end, negative without memory. */
static int next_key(struct walk *walk, struct ckpt_err *err) {
    if (json_next(&walk->json) != JSON_KEY)
        return 0;
    return keys_add(&walk->keys, &walk->json) ? 1 : no_memory(err);
}

/* A map of strings, or null for none (shown as it stands). A key may be there twice: the last one counts, as
 * in every JSON reader.
 */
static int read_metadata(struct walk *walk, struct ckpt_err *err) {
    if (walk->file->has_metadata)
        return err_set(err, CKPT_E_CORRUPT, "the header holds the key '" SAFETENSORS_METADATA "' twice");
    walk->file->has_metadata = true;
    enum json_event event = json_next(&walk->json);
    if (event != JSON_OBJECT && event != JSON_NULL)
        return err_set(err, CKPT_E_CORRUPT, SAFETENSORS_METADATA " is not an object");
    size_t start = json_token(&walk->json);
    while (event != JSON_NULL && json_next(&walk->json) == JSON_KEY) {
        struct quoted key;
        quote(&key, walk->json.value, walk->json.value_len);
        if (json_next(&walk->json) != JSON_STRING)
            return err_set(
                err, CKPT_E_CORRUPT, SAFETENSORS_METADATA ": the value of %s is not a string", key.text);
    }
    walk->file->metadata_len = json_offset(&walk->json) - start;
    walk->file->metadata = arena_text(walk->arena, walk->text + start, walk->file->metadata_len);
    return walk->file->metadata ? 0 : no_memory(err);
}

/* ---- one tensor ------------------------------------------------------------------------------------- */

static int read_dtype(struct walk *walk, struct tensor *tensor, struct ckpt_err *err) {
    struct json *json = &walk->json;
    if (json_next(json) != JSON_STRING)
        return err_set(err, CKPT_E_CORRUPT, "tensor %s: dtype is not a string", walk->name.text);
    int dtype = dtype_find(json->value, json->value_len);
    struct quoted quoted;
    if (dtype < 0 || dtype == DTYPE_C128) /* the one type that only .oam has */
        return err_set(err, CKPT_E_CORRUPT, "tensor %s: unknown dtype %s", walk->name.text,
            quote(&quoted, json->value, json->value_len));
    tensor->dtype = (uint8_t)dtype;
    return 0;
}

static int read_number(
    struct walk *walk, enum json_event event, const char *field, uint64_t max, struct ckpt_err *err) {
    const struct json *json = &walk->json;
    uint64_t value;
    if (event != JSON_NUMBER)
        return err_set(
            err, CKPT_E_CORRUPT, "tensor %s: %s holds something that is no number", walk->name.text, field);
    struct quoted quoted;
    if (!json_u64(json, &value) || value > max)
        return err_set(err, CKPT_E_CORRUPT, "tensor %s: %s holds %s, not a whole number from 0 to %" PRIu64,
            walk->name.text, field, quote(&quoted, json->value, json->value_len), max);
    if (walk->number_count == SAFETENSORS_RANK_MAX)
        return err_set(err, CKPT_E_LIMIT, "tensor %s: %s holds more than %d numbers", walk->name.text, field,
            SAFETENSORS_RANK_MAX);
    walk->numbers[walk->number_count++] = value;
    return 0;
}

/* An array of whole numbers up to max, into walk->numbers. */
static int read_numbers(struct walk *walk, const char *field, uint64_t max, struct ckpt_err *err) {
    enum json_event event = json_next(&walk->json);
    if (event != JSON_ARRAY)
        return err_set(err, CKPT_E_CORRUPT, "tensor %s: %s is not an array", walk->name.text, field);
    walk->number_count = 0;
    while ((event = json_next(&walk->json)) != JSON_ARRAY_END) {
        int rc = read_number(walk, event, field, max, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_shape(struct walk *walk, struct tensor *tensor, struct ckpt_err *err) {
    static const uint64_t scalar[1];
    int rc = read_numbers(walk, SAFETENSORS_SHAPE, SAFETENSORS_EXTENT_MAX, err);
    if (rc)
        return rc;
    tensor->rank = walk->number_count;
    tensor->shape = scalar;
    if (!tensor->rank)
        return 0;
    uint64_t *shape = arena_alloc(walk->arena, tensor->rank, sizeof *shape);
    if (!shape)
        return no_memory(err);
    memcpy(shape, walk->numbers, tensor->rank * sizeof *shape);
    tensor->shape = shape;
    return 0;
}

static int read_offsets(struct walk *walk, struct tensor *tensor, struct ckpt_err *err) {
    int rc = read_numbers(walk, SAFETENSORS_OFFSETS, SAFETENSORS_OFFSET_MAX, err);
    if (rc)
        return rc;
    if (walk->number_count != 2)
        return err_set(err, CKPT_E_CORRUPT, "tensor %s: data_offsets holds %u numbers, not 2",
            walk->name.text, walk->number_count);
    uint64_t begin = walk->numbers[0], end = walk->numbers[1];
    if (begin > end)
        return err_set(err, CKPT_E_CORRUPT,
            "tensor %s: data_offsets begin after they end: [%" PRIu64 ", %" PRIu64 "]", walk->name.text,
            begin, end);
    /* Below 2^63 + 2^27; whether it is inside the file is known once every tensor's place is. */
    tensor->offset = walk->file->header_bytes + begin;
    tensor->size = end - begin;
    return 0;
}

static int check_size(struct walk *walk, struct tensor *tensor, struct ckpt_err *err) {
    uint64_t bytes = 0;
    enum tensor_fault fault = tensor_check(tensor, &bytes);
    if (fault == TENSOR_OK)
        return 0;
    const struct dtype_info *dtype = &dtype_table[tensor->dtype];
    const char *name = walk->name.text;
    struct quoted quoted;
    const char *shape = quote_shape(&quoted, tensor->shape, tensor->rank);
    uint64_t begin = tensor->offset - walk->file->header_bytes;
    switch (fault) {
    case TENSOR_ELEMENTS:
        return err_set(err, CKPT_E_CORRUPT, "tensor %s: shape %s has 2^64 elements or more", name, shape);
    case TENSOR_DENSE_OVERFLOW:
        return err_set(err, CKPT_E_CORRUPT, "tensor %s: shape %s of %s needs 2^64 bytes or more", name, shape,
            dtype->name);
    case TENSOR_PARTIAL_BYTE:
        return err_set(err, CKPT_E_CORRUPT,
            "tensor %s: shape %s of %s: %" PRIu64 " x %u bits do not fill whole bytes", name, shape,
            dtype->name, tensor->elements, dtype->bits);
    default:
        return err_set(err, CKPT_E_CORRUPT,
            "tensor %s: data_offsets [%" PRIu64 ", %" PRIu64 "] hold %" PRIu64
            " bytes, shape %s of %s needs %" PRIu64,
            name, begin, begin + tensor->size, tensor->size, shape, dtype->name, bytes);
    }
}

enum { SEEN_DTYPE = 1, SEEN_SHAPE = 2, SEEN_OFFSETS = 4, SEEN_ALL = 7 };

/* Reads the value of the key at hand; *seen gets the field's bit. Other fields are passed over, as the
 * reference implementation does. */
static int read_field(struct walk *walk, struct tensor *tensor, unsigned *seen, struct ckpt_err *err) {
    struct json *json = &walk->json;
    if (json_is(json, SAFETENSORS_DTYPE)) {
        *seen |= SEEN_DTYPE;
        return read_dtype(walk, tensor, err);
    }
    if (json_is(json, SAFETENSORS_SHAPE)) {
        *seen |= SEEN_SHAPE;
        return read_shape(walk, tensor, err);
    }
    if (json_is(json, SAFETENSORS_OFFSETS)) {
        *seen |= SEEN_OFFSETS;
        return read_offsets(walk, tensor, err);
    }
    json_skip(json, json_next(json));
    return 0;
}

static int check_fields(struct walk *walk, unsigned seen, struct ckpt_err *err) {
    const char *key;
    size_t len;
    struct quoted quoted;
    if (keys_repeated(&walk->keys, &key, &len))
        return err_set(err, CKPT_E_CORRUPT, "tensor %s: the field %s is there twice", walk->name.text,
            quote(&quoted, key, len));
    if (seen == SEEN_ALL)
        return 0;
    return err_set(err, CKPT_E_CORRUPT, "tensor %s: the entry has no %s", walk->name.text,
        !(seen & SEEN_DTYPE)   ? SAFETENSORS_DTYPE
        : !(seen & SEEN_SHAPE) ? SAFETENSORS_SHAPE
                               : SAFETENSORS_OFFSETS);
}

static int read_tensor(struct walk *walk, struct tensor *tensor, struct ckpt_err *err) {
    quote(&walk->name, walk->json.value, walk->json.value_len);
    tensor->name_len = (uint32_t)walk->json.value_len;
    tensor->name = arena_text(walk->arena, walk->json.value, walk->json.value_len);
    if (!tensor->name)
        return no_memory(err);
    if (json_next(&walk->json) != JSON_OBJECT)
        return err_set(err, CKPT_E_CORRUPT, "tensor %s: the entry is not an object", walk->name.text);
    keys_clear(&walk->keys);
    unsigned seen = 0;
    int rc;
    while ((rc = next_key(walk, err)) > 0)
        if ((rc = read_field(walk, tensor, &seen, err)) < 0)
            return rc;
    if (!rc)
        rc = check_fields(walk, seen, err);
    return rc ? rc : check_size(walk, tensor, err);
}

/* ---- the header ------------------------------------------------------------------------------------- */

static int read_members(struct walk *walk, struct ckpt_err *err) {
    struct safetensors *file = walk->file;
    json_next(&walk->json);
    while (json_next(&walk->json) == JSON_KEY) {
        int rc = json_is(&walk->json, SAFETENSORS_METADATA)
                     ? read_metadata(walk, err)
                     : read_tensor(walk, &file->items[file->count++], err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_header(
    struct arena *arena, const char *header, size_t len, struct safetensors *file, struct ckpt_err *err) {
    struct walk walk = {.text = header, .arena = arena, .file = file};
    json_start(&walk.json, header, len);
    keys_start(&walk.keys, header, len);
    int rc = read_members(&walk, err);
    int memory = json_no_memory(&walk.json, err); /* then what was said of the text means nothing */
    keys_free(&walk.keys);
    json_stop(&walk.json);
    return memory ? memory : rc;
}

static size_t blanks_before(const char *text, size_t len) {
    size_t at = 0;
    while (at < len && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r'))
        at++;
    return at;
}

int safetensors_header(const char *header, size_t len, uint64_t file_size, struct arena *arena,
    struct safetensors *ret_file, struct ckpt_err *err) {
    /* Blanks before it are no fault: the reference implementation takes what JSON allows. */
    size_t blanks = blanks_before(header, len);
    if (blanks == len || header[blanks] != '{')
        return err_set(err, CKPT_E_CORRUPT, "the header of %zu bytes does not start with '{'", len);
    uint64_t members;
    bool repeated;
    int rc = object_survey(header, len, "the header", SAFETENSORS_DEPTH_MAX, &members, &repeated, err);
    if (rc)
        return rc;
    struct safetensors file = {
        .metadata = "{}", .metadata_len = 2, .header_bytes = SAFETENSORS_LENGTH_BYTES + len};
    file.items = arena_alloc(arena, members, sizeof *file.items); /* one too many when there is metadata */
    if (!file.items)
        return no_memory(err);
    rc = read_header(arena, header, len, &file, err);
    if (!rc && repeated)
        rc = safetensors_repeats(file.items, &file.count, err);
    if (!rc)
        rc =
            safetensors_places(file.items, file.count, file.header_bytes, file_size - file.header_bytes, err);
    if (!rc)
        *ret_file = file;
    return rc;
}
