/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .oam format as numbers: what its reader and its writer share. Little-endian, packed; all sizes are
 * bytes. The structs hold fields as values; the OFFSETs say where a field stands in the file.
 */
#ifndef FORMAT_OAM_LAYOUT_H
#define FORMAT_OAM_LAYOUT_H

#include <stdint.h>

#define OAM_MAGIC UINT32_C(0x004d414f) /* "OAM" and a NUL */
#define OAM_MAGIC_BYTES 4
#define OAM_VERSION_MIN 1
#define OAM_VERSION_MAX 3
#define OAM_VERSION_LEGACY 1    /* the file checksum is the XOR of the sections' checksums */
#define OAM_VERSION_QUANTIZED 3 /* the first one with quantized weights */
#define OAM_PAGE_BYTES 4096     /* sections start at the first page boundary after the table, or later */
#define OAM_SECTIONS_MAX 32

#define OAM_HEADER_BYTES 64
#define OAM_HEADER_CHECKSUM_OFFSET 24 /* eight bytes, zero while the checksum is taken */

struct oam_header {
    uint32_t magic, version, section_count, flags;
    uint64_t file_bytes, checksum;
};

enum oam_kind {
    OAM_CONFIG = 1,
    OAM_WEIGHTS,
    OAM_STATE,
    OAM_OPTIMIZER,
    OAM_PROGRESS,
    OAM_KERNEL_CACHE, /* of old writers; its content is not read */
    OAM_KIND_END
};

#define OAM_SECTION_BYTES 64 /* of a section header */

struct oam_section {
    uint32_t kind; /* enum oam_kind */
    uint32_t flags;
    uint64_t offset, size, compressed_size, checksum;
    uint8_t compression;
};

#define OAM_CONFIG_BYTES 108 /* followed by arch_config_bytes of anything */
#define OAM_ARCHITECTURE_BYTES 32

struct oam_config {
    char architecture[OAM_ARCHITECTURE_BYTES];
    uint32_t config_version, flags, d_model, n_layers, d_vocab, arch_config_bytes;
    uint8_t weight_dtype, state_dtype, compute_dtype;
};

#define OAM_INDEX_BYTES 8   /* count and a reserved word before the entries */
#define OAM_ENTRY_BYTES 216 /* of a tensor in the index */
#define OAM_NAME_BYTES 128
#define OAM_RANK_MAX 8
#define OAM_ENTRY_RESERVED_BYTES 4

struct oam_entry {
    uint64_t offset, size; /* from the blob's start, right after the index */
    uint64_t shape[OAM_RANK_MAX];
    uint8_t dtype, rank, encoding, block; /* encoding: enum encoding has its values */
};

#define OAM_OPTIMIZER_BYTES 68 /* followed by the moments, float32 */
#define OAM_OPTIMIZER_KIND_BYTES 16
#define OAM_MOMENT_ITEM_BYTES 4

struct oam_optimizer {
    char kind[OAM_OPTIMIZER_KIND_BYTES];
    float learning_rate, beta1, beta2, epsilon, weight_decay;
    int64_t step;
    uint64_t count;
};

#define OAM_PROGRESS_BYTES 104
#define OAM_METRIC_NAME_BYTES 32

struct oam_progress {
    int64_t step;
    uint64_t bytes_seen, env_steps;
    float learning_rate, best_metric;
    char metric_name[OAM_METRIC_NAME_BYTES];
    uint8_t phase, lower_is_better;
};

#endif
