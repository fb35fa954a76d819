/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts: one that is accepted accepts the envelope that it describes, and no other. */
#include "fuzz.h"

#include "base/text.h"
#include "format/envelope.h"
#include "format/envelope_header.h"
#include "hash/hash.h"

#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX ((uint64_t)1 << 16)

static int judge(const struct contract *contract, const uint8_t *bytes, size_t len) {
    struct ckpt_err err = {0};
    struct source *source = fuzz_source(bytes, len);
    int rc = envelope_judge(source, contract, &err);
    fuzz_error_holds(rc, &err);
    HOLDS(!rc || rc == CKPT_E_MISMATCH);
    source_close(source);
    return rc;
}

/* The contract's own file, every byte before the digests turned in turn, and one byte too few. */
static void judge_file(const struct contract *contract, const struct envelope_layout *layout, size_t len) {
    uint8_t *bytes = calloc(len, 1);
    HOLDS(bytes);
    envelope_layout_put(layout, bytes);
    memcpy(bytes + ENVELOPE_IDENTITY_OFFSET, contract->identity_sha256, sizeof contract->identity_sha256);
    HOLDS(!judge(contract, bytes, len));
    HOLDS(judge(contract, bytes, len - 1));
    for (size_t i = 0; i < ENVELOPE_DIGESTS_OFFSET; i += 13) {
        bool counter = i >= ENVELOPE_COUNTERS_OFFSET && i < ENVELOPE_IDENTITY_OFFSET;
        bytes[i] ^= 0x10;
        HOLDS(!judge(contract, bytes, len) == counter);
        bytes[i] ^= 0x10;
    }
    free(bytes);
}

static void contract_holds(struct contract *contract) {
    struct envelope_layout layout;
    for (int i = 0; i < ENVELOPE_IDENTITIES; i++) {
        HOLDS(text_is_utf8(contract->identity[i], contract->identity_len[i]));
        HOLDS(!contract->identity[i][contract->identity_len[i]]);
        HOLDS(!hash_bytes(HASH_SHA256, contract->identity[i], contract->identity_len[i],
            contract->identity_sha256[i], NULL));
    }
    HOLDS(judge(contract, NULL, 0));
    if (envelope_layout_of(contract->payload_bytes, contract->chunk_bytes, &layout) &&
        layout.header_bytes <= FILE_BYTES_MAX && layout.payload_bytes <= FILE_BYTES_MAX)
        judge_file(contract, &layout, (size_t)(layout.header_bytes + layout.payload_bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct contract contract;
    struct ckpt_err err = {0};
    int rc = contract_parse((const char *)data, size, &contract, &err);
    HOLDS(!rc || rc == CKPT_E_INVAL);
    if (rc)
        return 0;
    contract_holds(&contract);
    contract_free(&contract);
    return 0;
}
