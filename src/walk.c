/* SPDX-License-Identifier: Apache-2.0 */
#include "walk.h"

#include "base/err.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is selected ---------------------------------------------------------------------------------- */

struct selected {
    const char *given;
    char *text;   /* without the slashes at its ends */
    bool is_path; /* of the tree */
    bool used;
};

void selection_free(struct selection *selection) {
    for (size_t i = 0; i < selection->count; i++)
        free(selection->globs[i].text);
    free(selection->globs);
    *selection = (struct selection){0};
}

static int take(struct ckpt *ckpt, const char *glob, struct selected *selected, struct ckpt_err *err) {
    struct ckpt_stat stat;
    selected->given = glob;
    selected->text = strdup(glob + strspn(glob, "/"));
    if (!selected->text)
        return err_set(err, CKPT_E_NOMEM, "%s: no memory", glob);
    for (size_t len = strlen(selected->text); len && selected->text[len - 1] == '/';)
        selected->text[--len] = '\0';
    selected->is_path = ckpt_resolve(ckpt, selected->text, &stat, NULL) == 0;
    return 0;
}

int selection_make(struct ckpt *ckpt, const char *const *globs, size_t count, struct selection *ret_selection,
    struct ckpt_err *err) {
    struct selection selection = {.globs = calloc(count + 1, sizeof *selection.globs), .count = count};
    if (!selection.globs)
        return err_set(err, CKPT_E_NOMEM, "no memory for %zu patterns", count);
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++)
        rc = take(ckpt, globs[i], &selection.globs[i], err);
    if (rc)
        selection_free(&selection);
    else
        *ret_selection = selection;
    return rc;
}

const char *selection_unused(const struct selection *selection) {
    for (size_t i = 0; i < selection->count; i++)
        if (!selection->globs[i].used)
            return selection->globs[i].given;
    return NULL;
}

/* All globs are looked at, so that each one that matches is known to. */
static bool is_selected(struct selection *selection, const char *path) {
    bool any = selection->count == 0;
    for (size_t i = 0; i < selection->count; i++) {
        struct selected *one = &selection->globs[i];
        if (one->is_path ? strcmp(one->text, path) != 0 : fnmatch(one->text, path, 0) != 0)
            continue;
        one->used = any = true;
    }
    return any;
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

#define DEPTH_MAX 16 /* the tree has 3 levels */
#define PATH_BYTES ((CKPT_NAME_MAX + 1) * DEPTH_MAX)

struct level {
    uint64_t ino, index; /* of the directory, and of its next entry */
    size_t len;          /* of its path */
    bool selected;       /* with all below it */
    bool entered;        /* the walker was told */
};

struct way {
    struct ckpt *ckpt;
    struct selection *selection;
    const struct walker *walker;
    struct level levels[DEPTH_MAX];
    size_t depth;
    char path[PATH_BYTES];
};

/* Tells `told` of the directory at level `i`, as the path was there. */
static int tell(struct way *way, size_t i, int (*told)(void *arg, const char *path, struct ckpt_err *err),
    struct ckpt_err *err) {
    char *end = &way->path[way->levels[i].len], kept = *end;
    *end = '\0';
    int rc = told ? told(way->walker->arg, way->path, err) : 0;
    *end = kept;
    return rc;
}

/* The directories down to the deepest level are needed. */
static int enter(struct way *way, struct ckpt_err *err) {
    int rc = 0;
    for (size_t i = 0; !rc && i < way->depth; i++) {
        if (way->levels[i].entered)
            continue;
        rc = tell(way, i, way->walker->enter, err);
        way->levels[i].entered = true;
    }
    return rc;
}

static int leave(struct way *way, struct ckpt_err *err) {
    size_t last = --way->depth;
    return way->levels[last].entered ? tell(way, last, way->walker->leave, err) : 0;
}

static int descend(struct way *way, uint64_t ino, bool selected, struct ckpt_err *err) {
    if (way->depth == DEPTH_MAX)
        return err_set(err, CKPT_E_LIMIT, "%s: more than %d directories deep", way->path, DEPTH_MAX);
    way->levels[way->depth++] = (struct level){.ino = ino, .len = strlen(way->path), .selected = selected};
    return selected ? enter(way, err) : 0;
}

static int see(struct way *way, const struct ckpt_stat *stat, bool selected, struct ckpt_err *err) {
    if (stat->kind == CKPT_DIR)
        return descend(way, stat->ino, selected, err);
    if (!selected)
        return 0;
    int rc = enter(way, err);
    if (!rc && way->walker->file)
        rc = way->walker->file(way->walker->arg, way->path, stat, err);
    return rc;
}

/* The next entry of the deepest level. */
static int step(struct way *way, struct ckpt_err *err) {
    struct level *level = &way->levels[way->depth - 1];
    struct ckpt_dirent entry;
    int rc = ckpt_entry(way->ckpt, level->ino, level->index++, &entry, err);
    if (rc == CKPT_E_NOENT)
        return leave(way, err);
    if (rc)
        return rc;
    char *end = way->path + level->len;
    if (level->len)
        *end++ = '/';
    memcpy(end, entry.name, strlen(entry.name) + 1);
    bool matches = is_selected(way->selection, way->path); /* asked also where it makes no difference */
    return see(way, &entry.stat, level->selected || matches, err);
}

int walk(struct ckpt *ckpt, struct selection *selection, const struct walker *walker, struct ckpt_err *err) {
    struct way way = {.ckpt = ckpt, .selection = selection, .walker = walker};
    int rc = descend(&way, 1, is_selected(selection, ""), err);
    while (!rc && way.depth)
        rc = step(&way, err);
    return rc;
}
