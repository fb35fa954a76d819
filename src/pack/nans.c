/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/nans.h"

#include <string.h>

bool nans_place(const char *path, const char *member, size_t member_len, uint64_t *ret_off) {
    static const struct {
        const char *path, *member;
        uint64_t off;
    } places[] = {
        {"progress.json", "learning_rate", NANS_PROGRESS_OFFSET},
        {"progress.json", "best_metric", NANS_PROGRESS_OFFSET + 4},
        {"optimizer/optimizer.json", "learning_rate", NANS_OPTIMIZER_OFFSET},
        {"optimizer/optimizer.json", "beta1", NANS_OPTIMIZER_OFFSET + 4},
        {"optimizer/optimizer.json", "beta2", NANS_OPTIMIZER_OFFSET + 8},
        {"optimizer/optimizer.json", "epsilon", NANS_OPTIMIZER_OFFSET + 12},
        {"optimizer/optimizer.json", "weight_decay", NANS_OPTIMIZER_OFFSET + 16},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!strcmp(places[i].path, path) && strlen(places[i].member) == member_len &&
            !memcmp(places[i].member, member, member_len)) {
            *ret_off = places[i].off;
            return true;
        }
    return false;
}
