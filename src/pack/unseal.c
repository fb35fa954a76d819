/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "format/envelope_layout.h"
#include "pack/replace.h"
#include "pack/seal.h"
#include "pack/seal_chunks.h"
#include "pack/sink.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unsealing {
    struct source *source;
    const struct envelope *envelope;
    struct sink sink;
};

static int read_payload(void *arg, uint64_t off, void *buf, size_t len, struct ckpt_err *err) {
    struct unsealing *unsealing = arg;
    return source_read(unsealing->source, unsealing->envelope->header_bytes + off, buf, len, err);
}

static int write_copy(void *arg, uint64_t off, const void *bytes, size_t len, struct ckpt_err *err) {
    struct unsealing *unsealing = arg;
    return sink_write(&unsealing->sink, off, bytes, len, err);
}

static int differs(uint64_t index, const uint8_t *wanted, const uint8_t *found, struct ckpt_err *err) {
    char words[64], hex[2][2 * ENVELOPE_DIGEST_BYTES + 1];
    snprintf(words, sizeof words, "chunk-mismatch %" PRIu64, index);
    text_hex(wanted, ENVELOPE_DIGEST_BYTES, hex[0]);
    text_hex(found, ENVELOPE_DIGEST_BYTES, hex[1]);
    return err_verdict(err, CKPT_E_MISMATCH, words, "expected sha256:%s, found %s", hex[0], hex[1]);
}

static int compare(
    void *arg, uint64_t first, uint64_t count, const uint8_t (*digests)[32], struct ckpt_err *err) {
    const struct unsealing *unsealing = arg;
    const uint8_t *wanted =
        unsealing->envelope->header + ENVELOPE_DIGESTS_OFFSET + ENVELOPE_DIGEST_BYTES * first;
    for (uint64_t i = 0; i < count; i++, wanted += ENVELOPE_DIGEST_BYTES)
        if (memcmp(wanted, digests[i], ENVELOPE_DIGEST_BYTES) != 0)
            return differs(first + i, wanted, digests[i], err);
    return 0;
}

int unseal(struct source *source, const struct envelope *envelope, const char *to,
    const struct ckpt_write_options *options, struct ckpt_err *err) {
    struct unsealing unsealing = {.source = source, .envelope = envelope};
    const struct chunks chunks = {.chunk_bytes = envelope->chunk_bytes,
        .bytes = envelope->payload_bytes,
        .read = read_payload,
        .write = write_copy,
        .digests = compare,
        .arg = &unsealing};
    struct replace *replace;
    int rc = replace_begin(to, &replace, err);
    if (rc)
        return rc;
    unsealing.sink = sink_open(replace_fd(replace), to, 0, envelope->payload_bytes);
    rc = chunks_run(&chunks, options, err);
    sink_close(&unsealing.sink);
    if (!rc)
        return replace_commit(replace, err);
    replace_abandon(replace);
    return rc;
}
