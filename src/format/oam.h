/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .oam reader's own parts. oam.c is the reader, oam_table.c reads the header and the section table,
 * oam_tensors.c weights and state, oam_documents.c config, optimizer and progress.
 * Every check is made in the order of the format's reference reader, whose words the errors carry.
 */
#ifndef FORMAT_OAM_H
#define FORMAT_OAM_H

#include "format/format.h"
#include "format/oam_layout.h"

struct oam {
    struct source *source;
    uint64_t base; /* where source starts in what the catalog is about */
    const struct unit_judge *judge;
    struct catalog *catalog;
    struct oam_header header;
    struct oam_section sections[OAM_SECTIONS_MAX];
};

/* What is known of a kind of section by its number. */
struct oam_kind_info {
    const char *name; /* "weights" */
    const char *unit; /* "weights section" */
    const char *blob; /* "sections/weights.bin" */
};
extern const struct oam_kind_info oam_kind_table[OAM_KIND_END];

/*
 * Reads and checks the header and the section table, asks the judge about each payload, and fills the
 * catalog's sections, units and head. Errors: CORRUPT, IO, CHANGED, NOMEM, and the judge's.
 */
int oam_table(struct oam *oam, struct ckpt_err *err);

/*
 * The insides of a section. A document or group is filled only on success; CORRUPT always means that the
 * section's own bytes are at fault. Further errors: IO, CHANGED, NOMEM, LIMIT.
 */
int oam_tensors(
    struct oam *oam, const struct oam_section *section, struct group *group, struct ckpt_err *err);
int oam_config(
    struct oam *oam, const struct oam_section *section, struct document *document, struct ckpt_err *err);
int oam_optimizer(struct oam *oam, const struct oam_section *section, struct document *document,
    struct group *group, struct ckpt_err *err);
int oam_progress(
    struct oam *oam, const struct oam_section *section, struct document *document, struct ckpt_err *err);

/* Whether a text field of `width` bytes ends with a NUL and is UTF-8; what names it in the words. */
int oam_text(const void *field, size_t width, const char *what, struct ckpt_err *err);

/* FNV-1a 64 for metadata and names (payloads are the judge's): goes on from h, starts with OAM_FNV_START. */
#define OAM_FNV_START UINT64_C(0xcbf29ce484222325)
uint64_t oam_fnv(uint64_t h, const void *bytes, size_t len);

#endif
