/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/member.h"
#include "tree/views.h"

/* ---- checkpoint.json ---------------------------------------------------------------------------------- */

static bool put_section(cJSON *array, const struct section *section) {
    char checksum[32];
    snprintf(checksum, sizeof checksum, "fnv1a64:%016llx", (unsigned long long)section->checksum);
    cJSON *row = member_row(array);
    return row && member_text(row, "kind", section->kind) && member_u64(row, "offset", section->offset) &&
           member_u64(row, "size", section->size) && member_u64(row, "flags", section->flags) &&
           member_text(row, "checksum", checksum);
}

static bool put_sections(cJSON *root, const struct catalog *catalog) {
    cJSON *array = cJSON_AddArrayToObject(root, "sections");
    for (uint32_t i = 0; array && i < catalog->section_count; i++)
        if (!put_section(array, &catalog->sections[i]))
            return false;
    return array != NULL;
}

static bool put_shards(cJSON *root, const struct catalog *catalog) {
    cJSON *array = cJSON_AddArrayToObject(root, "shards");
    for (uint32_t i = 0; array && i < catalog->part_count; i++) {
        cJSON *name = cJSON_CreateString(catalog->parts[i].name);
        if (!name || !cJSON_AddItemToArray(array, name)) {
            cJSON_Delete(name);
            return false;
        }
    }
    return array != NULL;
}

static bool put_checkpoint(cJSON *root, const struct catalog *catalog) {
    return member_text(root, "format", catalog->format) &&
           (catalog->version ? member_u64(root, "version", catalog->version)
                             : member_text(root, "version", NULL)) &&
           member_u64(root, "source_bytes", catalog->source_bytes) &&
           cJSON_AddBoolToObject(root, "enveloped", catalog->envelope != NULL) &&
           member_u64(root, "tensor_count", catalog->groups[GROUP_TENSORS].count) &&
           member_u64(root, "state_count", catalog->groups[GROUP_STATE].count) &&
           cJSON_AddBoolToObject(root, "has_optimizer", catalog->has_optimizer) &&
           put_sections(root, catalog) && (!catalog->sharded || put_shards(root, catalog));
}

/* Prints root when it was filled, else frees it. */
static char *finish(cJSON *root, bool filled) {
    if (filled)
        return member_print(root);
    cJSON_Delete(root);
    return NULL;
}

char *json_checkpoint(const struct catalog *catalog) {
    cJSON *root = cJSON_CreateObject();
    return finish(root, root && put_checkpoint(root, catalog));
}

/* ---- envelope.json ------------------------------------------------------------------------------------ */

static bool put_identity(cJSON *root, const struct envelope *envelope) {
    static const char *const names[] = {"schema", "learner", "data", "seed"};
    cJSON *object = cJSON_AddObjectToObject(root, "identity");
    for (unsigned i = 0; object && i < 4; i++)
        if (!member_hex(object, names[i], "", envelope->identity[i], sizeof envelope->identity[i]))
            return false;
    return object != NULL;
}

static bool put_envelope(cJSON *root, const struct envelope *envelope) {
    return member_u64(root, "version", envelope->version) &&
           member_u64(root, "header_bytes", envelope->header_bytes) &&
           member_u64(root, "payload_bytes", envelope->payload_bytes) &&
           member_u64(root, "chunk_bytes", envelope->chunk_bytes) &&
           member_u64(root, "full_chunks", envelope->full_chunks) &&
           member_u64(root, "tail_bytes", envelope->tail_bytes) &&
           member_u64(root, "chunk_count", envelope->chunk_count) &&
           member_u64(root, "updates", envelope->updates) &&
           member_u64(root, "invocations", envelope->invocations) && put_identity(root, envelope) &&
           member_hex(root, "manifest_sha256", "", envelope->manifest, sizeof envelope->manifest);
}

char *json_envelope(const struct envelope *envelope) {
    cJSON *root = cJSON_CreateObject();
    return finish(root, root && put_envelope(root, envelope));
}
