/* SPDX-License-Identifier: Apache-2.0 */
/* The envelope's reader and the readers of what is inside; an accepted one holds against its own contract. */
#include "fuzz.h"

#include "base/rd.h"
#include "format/envelope.h"
#include "format/envelope_layout.h"

/* The contract that the header itself states. */
static struct contract own_contract(const uint8_t *data, size_t size) {
    struct contract contract = {0};
    struct rd rd = rd_over(data, size);
    rd_skip(&rd, 24);
    contract.payload_bytes = rd_u64(&rd);
    contract.chunk_bytes = rd_u64(&rd);
    memcpy(contract.identity_sha256, data + ENVELOPE_IDENTITY_OFFSET, sizeof contract.identity_sha256);
    return contract;
}

static int judge(const uint8_t *data, size_t size, const struct contract *contract) {
    struct ckpt_err err = {0};
    struct source *source = fuzz_source(data, size);
    int rc = envelope_judge(source, contract, &err);
    fuzz_error_holds(rc, &err);
    HOLDS(!rc || rc == CKPT_E_MISMATCH);
    source_close(source);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bool accepted = fuzz_format(&format_envelope, data, size);
    if (size < ENVELOPE_PAGE_BYTES)
        return 0;
    struct contract contract = own_contract(data, size);
    int rc = judge(data, size, &contract);
    HOLDS(!accepted || !rc);
    contract.identity_sha256[3][31] ^= 1;
    HOLDS(judge(data, size, &contract));
    return 0;
}
