/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole read path: bytes are opened as ckpt_open does it, every node is visited, every file is read in
 * pieces and again at odd places. Then the file changes in one byte after it was parsed: whatever still comes
 * out must be what came out before.
 */
#include "world.h"

#include "hash/fnv1a.h"

#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX ((uint64_t)8 << 20) /* of larger files the first bytes */
#define WINDOWS 4

/* What is known of a file's content from the first time. */
struct kept {
    bool whole, dynamic;
    uint64_t size, digest;
};

/* ---- reading a file ---------------------------------------------------------------------------------- */

static int read_piece(struct tree_file *file, uint64_t off, uint8_t *buf, size_t len) {
    struct ckpt_err err = {0};
    size_t got = SIZE_MAX;
    uint64_t size = tree_file_size(file), left = off < size ? size - off : 0;
    int rc = tree_read(file, off, buf, len, &got, NULL, &err);
    fuzz_error_holds(rc, &err);
    HOLDS(rc ? got == SIZE_MAX : got == (left < len ? left : len));
    HOLDS(!rc || rc == CKPT_E_CORRUPT || rc == CKPT_E_MISMATCH || rc == CKPT_E_CHANGED);
    return rc;
}

/* In pieces of 1, 4, 13, ... bytes; a piece that cannot be read cannot be read again either. */
static bool read_whole(struct tree_file *file, uint8_t *buf, size_t len) {
    for (size_t off = 0, step = 1; off < len; off += step, step = 3 * step + 1) {
        size_t piece = step < len - off ? step : len - off;
        if (!read_piece(file, off, buf + off, piece))
            continue;
        HOLDS(read_piece(file, off, buf + off, piece));
        return false;
    }
    return true;
}

/* Places that the content chooses, in memory of exactly their size, some of them past the end. */
static void read_again(struct tree_file *file, const uint8_t *whole, size_t len, uint64_t dice) {
    for (unsigned i = 0; i < WINDOWS; i++, dice = dice * 6364136223846793005 + 1442695040888963407) {
        size_t off = (size_t)((dice >> 32) % (len + 2)), want = (size_t)((dice >> 8) % 4099);
        uint8_t *buf = malloc(want);
        HOLDS(buf || !want);
        size_t inside = off < len ? len - off : 0;
        if (off + want <= FILE_BYTES_MAX) {
            HOLDS(!read_piece(file, off, buf, want));
            inside = inside < want ? inside : want;
            HOLDS(!inside || !memcmp(buf, whole + off, inside));
        }
        free(buf);
    }
    uint8_t byte;
    HOLDS(!read_piece(file, UINT64_MAX, &byte, 1));
}

static struct kept read_file(struct world *world, const struct ckpt_dirent *entry) {
    struct ckpt_err err = {0};
    struct tree_file *file;
    struct kept kept = {.dynamic = entry->stat.dynamic};
    int rc = tree_open(world->tree, entry->stat.ino, &file, NULL, &err);
    fuzz_error_holds(rc, &err);
    HOLDS(!rc || (!world->sound && !entry->stat.size)); /* an empty file is judged when it is opened */
    kept.size = entry->stat.size;
    if (rc)
        return kept;
    kept.size = tree_file_size(file);
    HOLDS(kept.dynamic || kept.size == entry->stat.size);
    size_t len = (size_t)(kept.size < FILE_BYTES_MAX ? kept.size : FILE_BYTES_MAX);
    uint8_t *bytes = malloc(len);
    HOLDS(bytes || !len);
    kept.whole = read_whole(file, bytes, len);
    HOLDS(kept.whole || !world->sound);
    kept.digest = kept.whole ? fnv1a64(FNV1A64_START, bytes, len) : 0;
    if (kept.whole) {
        read_again(file, bytes, len, kept.digest);
        world_file_holds(entry->name, bytes, len, kept.size);
    }
    free(bytes);
    tree_close(file);
    return kept;
}

/* ---- the file changes -------------------------------------------------------------------------------- */

struct memory {
    struct kept *kept; /* by inode - 1 */
    bool again;
};

static void visit_file(struct world *world, const struct ckpt_dirent *entry, void *arg) {
    struct memory *memory = arg;
    struct kept *before = &memory->kept[entry->stat.ino - 1], now = read_file(world, entry);
    if (!memory->again)
        *before = now;
    else if (now.whole && before->whole && !now.dynamic)
        HOLDS(now.size == before->size && now.digest == before->digest);
}

/* Only where digests vouch for the bytes. */
static void turn_a_byte(const uint8_t *data, size_t size, struct memory *memory) {
    uint64_t dice = fnv1a64(FNV1A64_START, data, size);
    uint8_t *bytes = malloc(size);
    struct world world;
    HOLDS(bytes);
    memcpy(bytes, data, size);
    if (world_open(&world, bytes, size)) {
        world.sound = false;
        bytes[(dice >> 8) % size] ^= (uint8_t)(dice % 255 + 1);
        memory->again = true;
        world_walk(&world, visit_file, memory);
    }
    world_close(&world);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct world world;
    struct memory memory = {0};
    bool digests = false;
    if (world_open(&world, data, size)) {
        memory.kept = calloc(tree_count(world.tree), sizeof *memory.kept);
        HOLDS(memory.kept);
        world_walk(&world, visit_file, &memory);
        digests = world.catalog.units.count;
    }
    world_close(&world);
    if (digests)
        turn_a_byte(data, size, &memory);
    free(memory.kept);
    return 0;
}
