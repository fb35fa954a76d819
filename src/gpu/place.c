/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/place.h"

#include "base/json.h"
#include "base/put.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- members ----------------------------------------------------------------------------------------- */

static void put_name(struct buf *buf, const char *name) {
    buf_puts(buf, buf->len ? ",\n\t" : "{\n\t");
    json_put_string(buf, name, strlen(name));
    buf_puts(buf, ":\t");
}

static void put_text(struct buf *buf, const char *name, const char *text, size_t len) {
    put_name(buf, name);
    json_put_string(buf, text, len);
}

static void put_string(struct buf *buf, const char *name, const char *text) {
    put_text(buf, name, text, strlen(text));
}

static void put_number(struct buf *buf, const char *name, uint64_t value) {
    put_name(buf, name);
    put_u64(buf, value);
}

static void put_raw(struct buf *buf, const char *name, const char *json) {
    put_name(buf, name);
    buf_puts(buf, json);
}

/* As nvidia-smi writes it. */
static void put_uuid(struct buf *buf, const uint8_t uuid[GPU_UUID_BYTES]) {
    char hex[2 * GPU_UUID_BYTES + 1];
    text_hex(uuid, GPU_UUID_BYTES, hex);
    put_name(buf, "uuid");
    buf_printf(buf, "\"GPU-%.8s-%.4s-%.4s-%.4s-%.12s\"", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

static void put_shape(struct buf *buf, const struct tensor *tensor) {
    put_name(buf, "shape");
    buf_putc(buf, '[');
    put_list(buf, tensor->shape, tensor->rank, ", ");
    buf_putc(buf, ']');
}

/* The text with its end, or NULL. */
static char *finish(struct buf *buf) {
    buf_puts(buf, "\n}\n");
    if (buf_cstr(buf))
        return buf->bytes;
    buf_free(buf);
    return NULL;
}

/* ---- documents --------------------------------------------------------------------------------------- */

static void put_share(struct buf *buf, const struct gpu_place *place) {
    char hex[2 * GPU_HANDLE_BYTES + 1];
    if (place->loaded.at.share == GPU_SHARE_IPC) {
        text_hex(place->loaded.at.handle, GPU_HANDLE_BYTES, hex);
        put_string(buf, "share", "ipc");
        put_string(buf, "ipc_handle", hex);
    } else {
        put_string(buf, "share", "fd");
        put_number(buf, "block", place->loaded.at.block);
        put_string(buf, "socket", place->socket);
        put_string(buf, "token", place->token);
    }
}

char *place_text(const struct gpu_place *place) {
    struct buf buf = {0};
    put_number(&buf, "device", place->device.ordinal);
    put_uuid(&buf, place->device.uuid);
    put_text(&buf, "name", place->tensor->name, place->tensor->name_len);
    put_string(&buf, "dtype", dtype_table[place->loaded.dtype].name);
    put_shape(&buf, place->tensor);
    put_number(&buf, "bytes", place->loaded.at.bytes);
    put_number(&buf, "offset", place->loaded.at.offset);
    put_share(&buf, place);
    return finish(&buf);
}

char *facts_text(const struct gpu_facts *facts) {
    const struct gpu_device *device = &facts->device;
    struct buf buf = {0};
    put_number(&buf, "device", device->ordinal);
    put_uuid(&buf, device->uuid);
    put_string(&buf, "name", device->name);
    put_name(&buf, "driver");
    buf_printf(&buf, "\"%u.%u\"", device->driver / 1000, device->driver % 1000 / 10);
    put_number(&buf, "memory_total", facts->memory.total);
    put_number(&buf, "memory_free", facts->memory.free);
    put_number(&buf, "memory_used", facts->memory.taken);
    if (facts->limited)
        put_number(&buf, "budget", facts->budget);
    else
        put_raw(&buf, "budget", "null");
    put_raw(&buf, "pinned", device->pinned ? "true" : "false");
    put_raw(&buf, "converts", device->converts ? "true" : "false");
    if (!device->converts)
        put_string(&buf, "lack", device->lack);
    return finish(&buf);
}
