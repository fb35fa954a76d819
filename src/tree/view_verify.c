/* SPDX-License-Identifier: Apache-2.0 */
/* verify.json: what has been verified so far, and what was found. A snapshot, taken when the file is opened.
 */
#include "tree/member.h"
#include "tree/views.h"

#define FAULTS_MAX 1000 /* listed; the rest is counted */

static const char *const mode_names[] = {[CKPT_VERIFY_LAZY] = "lazy",
    [CKPT_VERIFY_FULL] = "full",
    [CKPT_VERIFY_BACKGROUND] = "background",
    [CKPT_VERIFY_OFF] = "off"};

static const char *const state_names[] = {
    [UNIT_UNKNOWN] = "unknown", [UNIT_VERIFIED] = "verified", [UNIT_CORRUPT] = "corrupt"};

static bool put_facts(cJSON *root, const struct catalog *catalog, struct guard *guard) {
    struct guard_tally tally;
    guard_tally(guard, &tally);
    const struct digest_info *digest = &digest_table[catalog_digest(catalog)];
    enum ckpt_verify_mode mode = guard_mode(guard);
    const char *against = mode == CKPT_VERIFY_OFF ? "nothing: verification is off" : digest->against;
    return member_text(root, "mode", mode_names[mode]) && member_text(root, "strength", digest->name) &&
           member_text(root, "protects_against", against) && member_u64(root, "units", tally.units) &&
           member_u64(root, "verified", tally.verified) && member_u64(root, "corrupt", tally.corrupt) &&
           member_u64(root, "bytes", tally.bytes) &&
           member_u64(root, "bytes_verified", tally.bytes_verified) &&
           (!catalog->envelope || member_hex(root, "manifest_sha256", "", catalog->envelope->manifest, 32));
}

static cJSON *put_unit(cJSON *array, const struct unit *unit) {
    char chunk[32];
    snprintf(chunk, sizeof chunk, "chunk %llu", (unsigned long long)unit->index);
    cJSON *row = member_row(array);
    bool ok = row && member_text(row, "unit", unit->label ? unit->label : chunk) &&
              member_u64(row, "index", unit->index) && member_u64(row, "offset", unit->at.off) &&
              member_u64(row, "size", unit->at.len);
    return ok ? row : NULL;
}

/* Units that were listed one by one (sections) are few; chunks may be millions and are only counted. */
static bool put_units(cJSON *root, struct guard *guard) {
    const struct unit_table *units = guard_units(guard);
    if (!units->list)
        return true;
    cJSON *array = cJSON_AddArrayToObject(root, "unit_list");
    for (uint64_t i = 0; array && i < units->count; i++) {
        struct unit unit = unit_get(units, i);
        cJSON *row = put_unit(array, &unit);
        if (!row || !member_text(row, "state", state_names[guard_unit_state(guard, i)]))
            return false;
    }
    return array != NULL;
}

static bool put_fault(cJSON *array, struct guard *guard, uint64_t index) {
    struct unit unit = unit_get(guard_units(guard), index);
    uint8_t found[32];
    char prefix[16];
    snprintf(prefix, sizeof prefix, "%s:", digest_table[unit.kind].name);
    cJSON *row = put_unit(array, &unit);
    if (!row || !member_hex(row, "expected", prefix, unit.digest, digest_table[unit.kind].bytes))
        return false;
    if (guard_unit_found(guard, index, found))
        return member_hex(row, "found", prefix, found, digest_table[unit.kind].bytes);
    return member_text(row, "found", NULL);
}

static bool put_faults(cJSON *root, struct guard *guard) {
    cJSON *array = cJSON_AddArrayToObject(root, "faults");
    uint64_t unit, seen = 0;
    for (; array && seen < FAULTS_MAX && guard_corrupt_unit(guard, seen, &unit); seen++)
        if (!put_fault(array, guard, unit))
            return false;
    struct guard_tally tally;
    guard_tally(guard, &tally);
    return array && member_u64(root, "faults_left_out", tally.corrupt > seen ? tally.corrupt - seen : 0);
}

char *json_verify(const struct catalog *catalog, struct guard *guard) {
    cJSON *root = cJSON_CreateObject();
    if (root && put_facts(root, catalog, guard) && put_faults(root, guard) && put_units(root, guard))
        return member_print(root);
    cJSON_Delete(root);
    return NULL;
}
