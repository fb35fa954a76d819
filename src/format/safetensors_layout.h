/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A safetensors file: N (u64 little-endian), N bytes of a JSON object, data. What reader and writer share.
 */
#ifndef FORMAT_SAFETENSORS_LAYOUT_H
#define FORMAT_SAFETENSORS_LAYOUT_H

#include <stdint.h>

#define SAFETENSORS_LENGTH_BYTES 8
#define SAFETENSORS_HEADER_MAX UINT64_C(100000000) /* N */
#define SAFETENSORS_OFFSET_MAX ((uint64_t)INT64_MAX)
#define SAFETENSORS_EXTENT_MAX UINT64_MAX /* beyond the offsets' it can only follow an extent of 0 */
#define SAFETENSORS_RANK_MAX 1024  /* more than any array library takes; it bounds what one entry can cost */
#define SAFETENSORS_DEPTH_MAX 127  /* nesting that the reference implementation reads */
#define SAFETENSORS_HEADER_ALIGN 8 /* writers pad the header with spaces; readers do not ask for it */

#define SAFETENSORS_METADATA "__metadata__"
#define SAFETENSORS_DTYPE "dtype"
#define SAFETENSORS_SHAPE "shape"
#define SAFETENSORS_OFFSETS "data_offsets"

#define SAFETENSORS_INDEX_MAX UINT64_C(100000000) /* bytes of a *.safetensors.index.json */
#define SAFETENSORS_INDEX_MAP "weight_map"
#define SAFETENSORS_INDEX_METADATA "metadata"

#endif
