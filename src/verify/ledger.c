/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/ledger.h"

#include "verify/pass.h"
#include "verify/span.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A source of a million bad units is one bad source: more details would cost memory, time and log lines. */
#define FAULTS_MAX 1024

/* What is wrong with a corrupt unit. */
struct fault {
    uint64_t index;
    bool hashed; /* found is its digest; else the block at `changed` was another one later */
    uint8_t found[32];
    uint64_t changed;
};

struct ledger {
    const struct unit_table *table;
    struct ckpt_log log;
    _Atomic uint8_t *states;     /* enum unit_state; VERIFIED is stored after the blocks it speaks of */
    _Atomic(uint64_t *) *blocks; /* a row a unit; NULL when all units are small */
    pthread_mutex_t lock;        /* guards what follows, and every change of a state */
    struct fault *faults;        /* by index */
    size_t fault_count, fault_cap;
    struct guard_tally tally;
};

static bool any_large(const struct unit_table *table) {
    if (table->digests)
        return table->chunk > SPAN_SMALL_BYTES;
    for (uint64_t i = 0; i < table->count; i++)
        if (table->list[i].at.len > SPAN_SMALL_BYTES)
            return true;
    return false;
}

int ledger_new(const struct unit_table *table, uint64_t source_bytes, const struct ckpt_log *log,
    struct ledger **ret_ledger, struct ckpt_err *err) {
    uint64_t bytes;
    int rc = span_check(table, source_bytes, &bytes, err);
    if (rc)
        return rc;
    struct ledger *ledger = calloc(1, sizeof *ledger);
    if (!ledger)
        return err_set(err, CKPT_E_NOMEM, "no memory for the ledger");
    pthread_mutex_init(&ledger->lock, NULL);
    ledger->table = table;
    ledger->log = *log;
    ledger->tally = (struct guard_tally){.units = table->count, .bytes = bytes};
    bool large = any_large(table);
    ledger->states = calloc(table->count + 1, sizeof *ledger->states);
    ledger->blocks = large ? calloc(table->count, sizeof *ledger->blocks) : NULL;
    if (!ledger->states || (large && !ledger->blocks)) {
        ledger_free(ledger);
        return err_set(err, CKPT_E_NOMEM, "no memory for the state of %" PRIu64 " units", table->count);
    }
    *ret_ledger = ledger;
    return 0;
}

void ledger_free(struct ledger *ledger) {
    if (!ledger)
        return;
    for (uint64_t i = 0; ledger->blocks && i < ledger->table->count; i++)
        free(atomic_load_explicit(&ledger->blocks[i], memory_order_relaxed));
    free((void *)ledger->blocks);
    free((void *)ledger->states);
    free(ledger->faults);
    pthread_mutex_destroy(&ledger->lock);
    free(ledger);
}

enum unit_state ledger_state(const struct ledger *ledger, uint64_t index) {
    return (enum unit_state)atomic_load_explicit(&ledger->states[index], memory_order_acquire);
}

static void set_state(struct ledger *ledger, uint64_t index, enum unit_state state) {
    atomic_store_explicit(&ledger->states[index], (uint8_t)state, memory_order_release);
}

const uint64_t *ledger_blocks(const struct ledger *ledger, uint64_t index) {
    return ledger->blocks ? atomic_load_explicit(&ledger->blocks[index], memory_order_acquire) : NULL;
}

void ledger_verified(struct ledger *ledger, uint64_t index, uint64_t *blocks) {
    if (ledger_state(ledger, index) != UNIT_UNKNOWN) {
        free(blocks);
        return;
    }
    uint64_t len = unit_get(ledger->table, index).at.len;
    pthread_mutex_lock(&ledger->lock);
    bool news = ledger_state(ledger, index) == UNIT_UNKNOWN;
    if (news) {
        if (blocks)
            atomic_store_explicit(&ledger->blocks[index], blocks, memory_order_release);
        ledger->tally.verified++;
        ledger->tally.bytes_verified += len;
        set_state(ledger, index, UNIT_VERIFIED);
    }
    pthread_mutex_unlock(&ledger->lock);
    if (!news)
        free(blocks);
}

/* ---- corrupt units ----------------------------------------------------------------------------------- */

/* Where the fault of this unit is, or would be. */
static size_t fault_at(const struct ledger *ledger, uint64_t index) {
    size_t low = 0, high = ledger->fault_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (ledger->faults[mid].index < index)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static const struct fault *fault_of(const struct ledger *ledger, uint64_t index) {
    size_t at = fault_at(ledger, index);
    return at < ledger->fault_count && ledger->faults[at].index == index ? &ledger->faults[at] : NULL;
}

/* False: no details are kept, the state alone has to do. The unit is refused all the same. */
static bool note_fault(struct ledger *ledger, const struct fault *fault) {
    if (ledger->fault_count == FAULTS_MAX)
        return false;
    if (ledger->fault_count == ledger->fault_cap) {
        size_t cap = ledger->fault_cap ? ledger->fault_cap * 2 : 8;
        struct fault *faults = reallocarray(ledger->faults, cap, sizeof *faults);
        if (!faults)
            return false;
        ledger->faults = faults;
        ledger->fault_cap = cap;
    }
    size_t at = fault_at(ledger, fault->index);
    struct fault *slot = ledger->faults + at;
    memmove(slot + 1, slot, (ledger->fault_count - at) * sizeof *slot);
    *slot = *fault;
    ledger->fault_count++;
    return true;
}

static void say_fault(struct ledger *ledger, uint64_t index) {
    struct ckpt_err err;
    if (ledger->log.say && ledger_fault(ledger, index, &err))
        ledger->log.say(ledger->log.arg, err.msg);
}

static void mark_corrupt(struct ledger *ledger, const struct fault *fault) {
    uint64_t index = fault->index, len = unit_get(ledger->table, index).at.len;
    pthread_mutex_lock(&ledger->lock);
    enum unit_state was = ledger_state(ledger, index);
    bool noted = false, last = false;
    if (was != UNIT_CORRUPT) {
        noted = note_fault(ledger, fault);
        last = noted && ledger->fault_count == FAULTS_MAX;
        ledger->tally.corrupt++;
        ledger->tally.verified -= was == UNIT_VERIFIED;
        ledger->tally.bytes_verified -= was == UNIT_VERIFIED ? len : 0;
        set_state(ledger, index, UNIT_CORRUPT);
    }
    pthread_mutex_unlock(&ledger->lock);
    if (noted)
        say_fault(ledger, index);
    if (last && ledger->log.say)
        ledger->log.say(ledger->log.arg, "more damaged units will not be listed one by one");
}

void ledger_differs(struct ledger *ledger, uint64_t index, const uint8_t found[32]) {
    struct fault fault = {.index = index, .hashed = true};
    memcpy(fault.found, found, sizeof fault.found);
    mark_corrupt(ledger, &fault);
}

void ledger_changed(struct ledger *ledger, uint64_t index, uint64_t off) {
    mark_corrupt(ledger, &(struct fault){.index = index, .changed = off});
}

int ledger_fault(struct ledger *ledger, uint64_t index, struct ckpt_err *err) {
    if (ledger_state(ledger, index) != UNIT_CORRUPT)
        return 0;
    struct unit unit = unit_get(ledger->table, index);
    char name[PASS_NAME_BYTES];
    pthread_mutex_lock(&ledger->lock);
    const struct fault *known = fault_of(ledger, index);
    struct fault fault = known ? *known : (struct fault){.hashed = true};
    pthread_mutex_unlock(&ledger->lock);
    if (fault.hashed)
        return pass_judge(&unit, known ? fault.found : NULL, err);
    return err_set(err, CKPT_E_CORRUPT,
        "block at offset %" PRIu64 " of the %s at offset %" PRIu64 ", length %" PRIu64
        ", differs from what was verified",
        fault.changed, pass_name(&unit, name), unit.at.off, unit.at.len);
}

bool ledger_found(struct ledger *ledger, uint64_t index, uint8_t digest[32]) {
    pthread_mutex_lock(&ledger->lock);
    const struct fault *fault = fault_of(ledger, index);
    bool known = fault && fault->hashed;
    if (known)
        memcpy(digest, fault->found, sizeof fault->found);
    pthread_mutex_unlock(&ledger->lock);
    return known;
}

bool ledger_corrupt(struct ledger *ledger, uint64_t n, uint64_t *ret_index) {
    pthread_mutex_lock(&ledger->lock);
    bool there = n < ledger->fault_count;
    if (there)
        *ret_index = ledger->faults[n].index;
    pthread_mutex_unlock(&ledger->lock);
    return there;
}

void ledger_tally(struct ledger *ledger, struct guard_tally *ret_tally) {
    pthread_mutex_lock(&ledger->lock);
    *ret_tally = ledger->tally;
    pthread_mutex_unlock(&ledger->lock);
}
