/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a format reader finds in a checkpoint, as plain data: tensors, documents, raw ranges, and the units
 * that carry digests. After a reader returned a catalog, nobody needs to know which format it was.
 *
 * Offsets: tensors and sections count from the start of the part that holds them (the .oam or safetensors
 * file itself, also inside an envelope; a shard); everything in a struct range is absolute in the source.
 * Everything lives in the catalog's arena and is immutable once the reader returned.
 */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "base/arena.h"
#include "base/err.h"
#include "catalog/dtype.h"

/* [off, off + len) of the source. len 0: nothing. */
struct range {
    uint64_t off, len;
};

enum encoding { ENCODING_DENSE, ENCODING_Q4, ENCODING_Q8, ENCODING_COUNT };
extern const char *const encoding_names[ENCODING_COUNT]; /* "dense", "q4", "q8" */

struct tensor {
    const char *name;      /* UTF-8, name_len bytes (a safetensors name may hold NULs), plus a NUL */
    const uint64_t *shape; /* rank extents, row-major */
    uint64_t offset;       /* in its part */
    uint64_t size;         /* stored bytes */
    uint64_t elements;
    uint32_t name_len;
    uint32_t part; /* index into catalog.parts */
    uint32_t rank;
    uint8_t dtype;    /* enum dtype */
    uint8_t encoding; /* enum encoding */
    uint8_t block;    /* 0 when dense, else elements a block */
};

/* Where a file of tensors starts in the source: one part, or one a shard. */
struct part {
    const char *name; /* the shard's file name; NULL when there is only one part */
    uint64_t base, size;
    const char *metadata; /* the shard's own, a JSON object or null; NULL when there is only one part */
    size_t metadata_len;
};

enum group_kind { GROUP_TENSORS, GROUP_STATE, GROUP_OPTIMIZER, GROUP_COUNT };

struct group {
    bool present; /* its folder exists, even when empty */
    bool damaged; /* its index could not be parsed and its unit's digest does not hold: items is empty */
    struct tensor *items;
    uint64_t count;
    struct range index; /* what the tensors' names, shapes and places were parsed from */
};

/* A JSON document of the tree. json NULL: it could not be parsed and its unit's digest does not hold. */
struct document {
    const char *path; /* "config.json" */
    const char *json; /* json_len bytes and a NUL */
    size_t json_len;
    struct range from; /* what it was parsed from */
};

/* A file of the tree that is a range of the source. */
struct blob {
    const char *path; /* "sections/weights.bin" */
    struct range at;
    struct range from; /* what its place was parsed from, beyond what is checked at opening; len 0: nothing */
};

struct section {
    const char *kind; /* "weights" */
    uint64_t offset, size, checksum;
    uint32_t flags;
};

/* ---- units: the smallest ranges with a digest of their own ------------------------------------------ */

enum digest_kind { DIGEST_NONE, DIGEST_FNV1A64, DIGEST_SHA256, DIGEST_KIND_COUNT };

struct digest_info {
    const char *name;    /* "fnv1a64": what a verification of its units is as strong as */
    const char *against; /* what that protects against, for people */
    size_t bytes;
};
extern const struct digest_info digest_table[DIGEST_KIND_COUNT];

/* One unit. The digest is in the order of its hex form (FNV-1a: big-endian). */
struct unit {
    struct range at;
    enum digest_kind kind;
    uint8_t digest[32];
    const char *label; /* "weights section"; NULL: "chunk INDEX" */
    uint64_t index;    /* chunk number or section table index */
};

/* Either `list` (count units in file order of their table), or chunks of one size with SHA-256 digests. */
struct unit_table {
    const struct unit *list;
    uint64_t count;
    uint64_t base, total, chunk;  /* chunks: payload start, payload bytes, chunk bytes */
    const uint8_t (*digests)[32]; /* chunks: count digests; NULL when `list` is used */
};

/* Unit number i (i < table->count). */
struct unit unit_get(const struct unit_table *table, uint64_t i);

/* ---- the envelope around it ------------------------------------------------------------------------- */

struct envelope {
    const uint8_t *header; /* header_bytes bytes, complete, as read at opening */
    uint64_t version, header_bytes, payload_bytes, chunk_bytes, full_chunks, tail_bytes, updates, invocations;
    uint64_t chunk_count;
    uint64_t
        stray; /* offset of the first nonzero byte between the last digest and the header's end; 0: none */
    uint8_t identity[4][32]; /* schema, learner, data, seed */
    uint8_t manifest[32];    /* SHA-256 of the header; filled in by the wiring, not by the reader */
};

struct catalog {
    struct arena arena;
    const char *format; /* "oam", "safetensors", "safetensors-index", "raw" */
    uint32_t version;   /* .oam version; 0: none */
    uint64_t source_bytes;
    struct envelope *envelope; /* NULL: none */
    const char *lost;     /* why an envelope's payload is shown as raw though it is not (its index lies in a
                             damaged chunk), for the log; NULL: nothing was lost */
    struct range lost_at; /* what could not be parsed then */
    struct part *parts;
    uint32_t part_count;
    struct group groups[GROUP_COUNT];
    bool exports; /* export/ exists for every group that has tensors */
    bool has_optimizer;
    bool sharded;             /* tensors.json and checkpoint.json name the shards */
    struct section *sections; /* in table order */
    uint32_t section_count;
    struct document *documents;
    uint32_t document_count;
    struct blob *blobs;
    uint32_t blob_count;
    struct range head;       /* the file header and section table: what everything else was found by */
    struct unit_table units; /* what lazy reading relies on; count 0: the source has no digests */
    struct unit_table inner; /* checked besides by a full verification (the sections of an enveloped .oam) */
};

void catalog_free(struct catalog *catalog);

/* The kind of digest that lazy reading relies on. */
enum digest_kind catalog_digest(const struct catalog *catalog);

/* Absolute range of a tensor's stored bytes. */
struct range tensor_range(const struct catalog *catalog, const struct tensor *tensor);

/* ---- the one validator ------------------------------------------------------------------------------ */

/*
 * What a tensor's shape and encoding demand. Faults in this order: ELEMENTS (the extents' product left to
 * right passes 2^64), DENSE_OVERFLOW (elements x size passes 2^64), BLOCK (a dense tensor has a block size),
 * QUANT_LAYOUT (not F32, block size not 32, no element), QUANT_OVERFLOW, PARTIAL_BYTE (bits do not fill whole
 * bytes), SIZE (tensor->size is not the product).
 */
enum tensor_fault {
    TENSOR_OK,
    TENSOR_ELEMENTS,
    TENSOR_DENSE_OVERFLOW,
    TENSOR_BLOCK,
    TENSOR_QUANT_LAYOUT,
    TENSOR_QUANT_OVERFLOW,
    TENSOR_PARTIAL_BYTE,
    TENSOR_SIZE,
};
/* Fills tensor->elements (when it does not overflow) and *ret_bytes (what size should be; with OK and SIZE
 * only). dtype and encoding must be known ones. Types below a byte are counted in bits, which must fit 64
 * bits too. */
enum tensor_fault tensor_check(struct tensor *tensor, uint64_t *ret_bytes);

/* The first two ranges by offset that overlap (a starts no later than b), empty ones left out; false when
 * none do. Sorts a copy: *ret_rc is 0, or NOMEM with false. */
bool ranges_overlap(
    const struct range *ranges, uint64_t count, uint64_t *ret_a, uint64_t *ret_b, int *ret_rc);

#endif
