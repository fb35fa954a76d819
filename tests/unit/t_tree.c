/* SPDX-License-Identifier: Apache-2.0 */
/* Names, directories, inodes and attributes of catalogs made by hand. */
#include "base/text.h"
#include "tree/layout.h"
#include "tree/names.h"
#include "tree/views.h"
#include "world.h"

/* ---- vectors of the executable contract -------------------------------------------------------------------
 */

static uint8_t *unhex(const char *hex, size_t *ret_len) {
    size_t len = strcmp(hex, "-") ? strlen(hex) / 2 : 0;
    uint8_t *bytes = calloc(len + 1, 1);
    ck_assert(!len || text_unhex(hex, len, bytes));
    *ret_len = len;
    return bytes;
}

static void check_name(const char *name_hex, const char *file_hex) {
    size_t name_len, file_len;
    uint8_t *name = unhex(name_hex, &name_len), *file = unhex(file_hex, &file_len);
    char got[CKPT_NAME_MAX + 1];
    tree_file_name((const char *)name, name_len, ".npy", got);
    ck_assert_str_eq(got, (const char *)file);
    tree_file_name((const char *)name, name_len, ".bin", got);
    ck_assert_uint_eq(strlen(got), file_len);
    ck_assert(!memcmp(got, file, file_len - 4) && !strcmp(got + file_len - 4, ".bin"));
    ck_assert(text_is_utf8(got, file_len));
    free(name);
    free(file);
}

static void check_header(const char *descr, char *shape_text, const char *header_hex) {
    enum dtype dtype = !strcmp(descr, "<f4") ? DTYPE_F32 : !strcmp(descr, "|u1") ? DTYPE_U8 : DTYPE_C128;
    uint64_t shape[400];
    uint32_t rank = 0;
    for (char *at = strtok(shape_text, ",-"); at; at = strtok(NULL, ",-"))
        ck_assert(text_u64(at, &shape[rank++]));
    struct tensor tensor = {.name = "", .dtype = (uint8_t)dtype, .shape = shape, .rank = rank};
    struct buf got = {0};
    size_t len;
    uint64_t size;
    uint8_t *want = unhex(header_hex, &len);
    npy_header(&tensor, &got);
    ck_assert_uint_eq(got.len, len);
    ck_assert(!memcmp(got.bytes, want, len));
    ck_assert(npy_exists(&tensor) && npy_size(&tensor, &size) && size == len);
    buf_free(&got);
    free(want);
}

START_TEST(names_and_headers_are_those_of_the_contract) {
    char path[1000], *line = NULL;
    size_t cap = 0, names = 0, headers = 0;
    const char *srcdir = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/unit/tree_vectors.txt", srcdir ? srcdir : ".");
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (getline(&line, &cap, file) > 0) {
        char *word[4] = {0};
        for (unsigned i = 0; i < 4; i++)
            word[i] = strtok(i ? NULL : line, " \n");
        if (!strcmp(word[0], "name") && ++names)
            check_name(word[1], word[2]);
        else if (++headers)
            check_header(word[1], word[2], word[3]);
    }
    ck_assert(names > 300 && headers > 50);
    free(line);
    fclose(file);
}
END_TEST

START_TEST(shapes_too_long_for_a_header_have_no_npy) {
    enum { MOST = 65535 };
    uint64_t *shape = calloc(MOST + 1, sizeof *shape);
    struct tensor tensor = {.name = "", .dtype = DTYPE_U8, .shape = shape};
    tensor.rank = 21800; /* three bytes an extent */
    ck_assert(npy_exists(&tensor));
    tensor.rank = 21900;
    ck_assert(!npy_exists(&tensor));
    tensor.rank = MOST + 1;
    ck_assert(!npy_exists(&tensor));
    free(shape);
}
END_TEST

/* ---- a world with some of everything
 * ----------------------------------------------------------------------- */

static const uint64_t two_by_three[] = {2, 3}, none[] = {0, 5}, hundred[] = {100}, four[] = {4};
static char long_name[400];

static struct tensor weights[7], moments[1];
static const struct document documents[] = {
    {.path = "config.json", .json = "{\"a\": 1}", .json_len = 8},
    {.path = "optimizer/optimizer.json", .json = "{}\n", .json_len = 3},
};
static const struct blob blobs[] = {
    {.path = "sections/weights.bin", .at = {1000, 500}},
    {.path = "raw/arch_config.bin", .at = {50, 10}},
};

static struct world *some_of_everything(void) {
    struct world *world = world_new();
    memset(long_name, 'n', sizeof long_name - 1);
    weights[0] = world_tensor("w", DTYPE_F32, ENCODING_DENSE, two_by_three, 2, 0);
    weights[1] = world_tensor("packed", DTYPE_F4, ENCODING_DENSE, four, 1, 24);
    weights[2] = world_tensor("../etc/passwd", DTYPE_BF16, ENCODING_DENSE, hundred, 1, 26);
    weights[3] = world_tensor("q", DTYPE_F32, ENCODING_Q4, hundred, 1, 300);
    weights[4] = world_tensor("", DTYPE_I64, ENCODING_DENSE, none, 2, 600);
    weights[5] = world_tensor(long_name, DTYPE_C128, ENCODING_DENSE, four, 1, 600);
    weights[6] = world_tensor("last", DTYPE_F8_E4M3, ENCODING_DENSE, NULL, 0, 700);
    moments[0] = world_tensor("first_moment", DTYPE_F32, ENCODING_DENSE, hundred, 1, 5000);
    struct group *groups = world->catalog.groups;
    groups[GROUP_TENSORS] = (struct group){.present = true, .items = weights, .count = 7};
    groups[GROUP_STATE] = (struct group){.present = true};
    groups[GROUP_OPTIMIZER] = (struct group){.present = true, .items = moments, .count = 1};
    world->catalog.exports = world->catalog.has_optimizer = true;
    world->catalog.documents = (struct document *)(uintptr_t)documents;
    world->catalog.document_count = 2;
    world->catalog.blobs = (struct blob *)(uintptr_t)blobs;
    world->catalog.blob_count = 2;
    return world;
}

/* Every path below `dir`, one a line, in the order of the directories. */
static void list(struct world *world, uint64_t dir, const char *prefix, struct buf *out) {
    struct ckpt_dirent entry;
    for (uint64_t i = 0; !tree_entry(world->tree, dir, i, &entry, NULL); i++) {
        bool folder = entry.stat.kind == CKPT_DIR;
        buf_printf(out, "%s%s%s\n", prefix, entry.name, folder ? "/" : "");
        char below[1000];
        snprintf(below, sizeof below, "%s%s/", prefix, entry.name);
        if (folder)
            list(world, entry.stat.ino, below, out);
    }
}

START_TEST(the_paths_are_those_of_the_contract) {
    struct world *world = some_of_everything();
    world_build(world);
    char stem[CKPT_NAME_MAX + 1];
    tree_file_name(long_name, strlen(long_name), ".npy", stem);
    stem[strlen(stem) - 4] = '\0';
    ck_assert_uint_eq(strlen(stem), 217);
    struct buf got = {0}, want = {0};
    list(world, 1, "", &got);
    buf_printf(&want,
        "checkpoint.json\nconfig.json\noptimizer/\noptimizer/optimizer.json\noptimizer/first_moment.npy\n"
        "tensors.json\nverify.json\ntensors/\n"
        "tensors/w.npy\ntensors/%%2E.%%2Fetc%%2Fpasswd.npy\ntensors/q.npy\ntensors/.npy\ntensors/%s.npy\n"
        "tensors/last.npy\n"
        "raw/\nraw/tensors/\nraw/tensors/w.bin\nraw/tensors/packed.bin\nraw/tensors/%%2E.%%2Fetc%%2Fpasswd.bin\n"
        "raw/tensors/q.bin\nraw/tensors/.bin\nraw/tensors/%s.bin\nraw/tensors/last.bin\n"
        "raw/optimizer/\nraw/optimizer/first_moment.bin\nraw/arch_config.bin\n"
        "state/\nsections/\nsections/weights.bin\n"
        "export/\nexport/model.safetensors\nexport/optimizer.safetensors\n",
        stem, stem);
    ck_assert_str_eq(buf_cstr(&got), buf_cstr(&want));
    buf_free(&got);
    buf_free(&want);
    world_free(world);
}
END_TEST

static bool is_dynamic(struct world *world, uint64_t dir, const char *name) {
    return !strcmp(name, "verify.json") || !strcmp(name, "device.json") ||
           dir == world_find(world, "gpu/tensors");
}

/* stat, entry and lookup say the same of every inode, each inode has one place, and link counts add up. */
static void check_directory(struct world *world, uint64_t dir, bool *seen) {
    struct ckpt_stat stat, self;
    struct ckpt_dirent entry;
    uint64_t count = 0, folders = 0;
    ck_assert_int_eq(tree_stat(world->tree, dir, &self, NULL), 0);
    for (; !tree_entry(world->tree, dir, count, &entry, NULL); count++) {
        bool good = entry.stat.ino >= 1 && entry.stat.ino <= tree_count(world->tree) &&
                    !seen[entry.stat.ino] && entry.stat.parent == dir &&
                    !tree_stat(world->tree, entry.stat.ino, &stat, NULL) && stat.ino == entry.stat.ino &&
                    stat.size == entry.stat.size && stat.parent == dir &&
                    !tree_lookup(world->tree, dir, entry.name, &stat, NULL) && stat.ino == entry.stat.ino &&
                    stat.kind == entry.stat.kind && stat.dynamic == is_dynamic(world, dir, entry.name) &&
                    (stat.kind == CKPT_DIR || stat.nlink == 1);
        if (!good)
            ck_abort_msg("'%s', inode %llu", entry.name, (unsigned long long)entry.stat.ino);
        seen[entry.stat.ino] = true;
        if (entry.stat.kind == CKPT_DIR) {
            folders++;
            check_directory(world, entry.stat.ino, seen);
        }
    }
    ck_assert(self.kind == CKPT_DIR && self.size == count && self.nlink == 2 + folders);
}

START_TEST(every_inode_has_one_place) {
    struct world *world = some_of_everything();
    world_build(world);
    bool *seen = calloc(tree_count(world->tree) + 1, sizeof *seen);
    seen[1] = true;
    check_directory(world, 1, seen);
    for (uint64_t ino = 1; ino <= tree_count(world->tree); ino++)
        ck_assert_msg(seen[ino], "inode %llu is nowhere", (unsigned long long)ino);
    free(seen);
    world_free(world);
}
END_TEST

START_TEST(what_is_not_there_is_not_found) {
    struct world *world = some_of_everything();
    world_build(world);
    struct ckpt_stat stat;
    struct ckpt_err err;
    struct ckpt_dirent entry;
    static const char *const absent[] = {"tensors/w.bin", "tensors/w", "tensors/W.npy", "tensors/packed.npy",
        "tensors/../etc/passwd.npy", "raw/tensors/w.npy", "nothing", "tensors/npy", "tensors/w.npy.npy",
        "state/w.npy", "optimizer/w.npy", "envelope", "export/state.safetensors",
        "tensors/%2e.%2Fetc%2Fpasswd.npy"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        ck_assert_msg(!world_find(world, absent[i]), "%s", absent[i]);
    char endless[5000];
    memset(endless, 'n', sizeof endless);
    memcpy(endless + sizeof endless - 5, ".npy", 5);
    ck_assert_int_eq(
        tree_lookup(world->tree, world_find(world, "tensors"), endless, &stat, &err), CKPT_E_NOENT);
    ck_assert_int_eq(tree_lookup(world->tree, world_find(world, "tensors"), "", &stat, &err), CKPT_E_NOENT);
    ck_assert_int_eq(
        tree_lookup(world->tree, world_find(world, "config.json"), "x", &stat, &err), CKPT_E_INVAL);
    ck_assert_int_eq(
        tree_entry(world->tree, world_find(world, "config.json"), 0, &entry, &err), CKPT_E_INVAL);
    ck_assert_int_eq(tree_entry(world->tree, 1, UINT64_MAX, &entry, &err), CKPT_E_NOENT);
    ck_assert_int_eq(tree_entry(world->tree, world_find(world, "state"), 0, &entry, &err), CKPT_E_NOENT);
    static const uint64_t inodes[] = {0, UINT64_MAX, 1u << 31};
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(tree_stat(world->tree, inodes[i], &stat, &err), CKPT_E_NOENT);
    ck_assert_int_eq(tree_stat(world->tree, tree_count(world->tree) + 1, &stat, &err), CKPT_E_NOENT);
    struct tree_file *file;
    ck_assert_int_eq(tree_open(world->tree, 1, &file, NULL, &err), CKPT_E_INVAL);
    ck_assert_int_eq(tree_open(world->tree, 0, &file, NULL, &err), CKPT_E_NOENT);
    world_free(world);
}
END_TEST

/* ---- refusals
 * -------------------------------------------------------------------------------------------------- */

static struct ckpt_err refusal(struct world *world, int code) {
    struct ckpt_err err = {0};
    struct tree *tree = (struct tree *)&err;
    ck_assert_int_eq(tree_new(&world->catalog, NULL, NULL, &tree, &err), code);
    ck_assert_ptr_eq(tree, &err); /* untouched */
    return err;
}

START_TEST(two_tensors_with_one_file_name_are_refused) {
    struct world *world = some_of_everything();
    char stem[CKPT_NAME_MAX + 1];
    tree_file_name(long_name, strlen(long_name), ".npy", stem);
    stem[strlen(stem) - 4] = '\0';
    weights[0].name = stem; /* short enough to stand as it is */
    weights[0].name_len = (uint32_t)strlen(stem);
    struct ckpt_err err = refusal(world, CKPT_E_LIMIT);
    stem[60] = '\0'; /* names are cut in messages */
    ck_assert_msg(strstr(err.msg, stem) && strstr(err.msg, "numbers 0 and 5"), "%s", err.msg);
    world_free(world);
}
END_TEST

START_TEST(views_past_63_bits_are_refused) {
    struct world *world = some_of_everything();
    static const uint64_t huge[] = {(uint64_t)1 << 61};
    weights[2] = world_tensor("huge", DTYPE_F8_E5M2, ENCODING_DENSE, huge, 1, 0);
    struct ckpt_err err = refusal(world, CKPT_E_LIMIT);
    ck_assert_msg(strstr(err.msg, "'huge'"), "%s", err.msg);
    weights[2].elements = UINT64_MAX;
    refusal(world, CKPT_E_LIMIT);
    world_free(world);
}
END_TEST

START_TEST(too_many_files_are_refused) {
    struct world *world = some_of_everything();
    world->catalog.groups[GROUP_STATE].count = (uint64_t)1 << 31;
    refusal(world, CKPT_E_LIMIT);
    world->catalog.groups[GROUP_STATE].count = UINT64_MAX;
    refusal(world, CKPT_E_LIMIT);
    world->catalog.groups[GROUP_STATE].count = 0;
    struct envelope envelope = {.chunk_count = ((uint64_t)1 << 31) - 10};
    world->catalog.envelope = &envelope;
    refusal(world, CKPT_E_LIMIT);
    world_free(world);
}
END_TEST

START_TEST(two_files_of_one_path_are_refused) {
    struct world *world = some_of_everything();
    struct blob twice[] = {{.path = "tensors.json"}, {.path = "config.json/x"}, {.path = "tensors"}};
    world->catalog.blob_count = 1;
    for (size_t i = 0; i < 3; i++) {
        world->catalog.blobs = &twice[i];
        refusal(world, CKPT_E_LIMIT);
    }
    world_free(world);
}
END_TEST

/* ---- attributes
 * ------------------------------------------------------------------------------------------------ */

static const char *attribute(struct world *world, const char *path, const char *name) {
    static char value[1000];
    char full[100];
    size_t len = 7;
    snprintf(full, sizeof full, "user.ckptfs.%s", name);
    int rc = tree_xattr_get(world->tree, world_find(world, path), full, value, sizeof value - 1, &len, NULL);
    if (rc)
        return rc == CKPT_E_NOENT && len == 7 ? "-" : "?";
    value[len] = '\0';
    return value;
}

START_TEST(attributes_tell_what_a_tensor_is) {
    struct world *world = some_of_everything();
    world_build(world);
    const char *path = "tensors/%2E.%2Fetc%2Fpasswd.npy";
    ck_assert_str_eq(attribute(world, path, "name"), "../etc/passwd");
    ck_assert_str_eq(attribute(world, path, "dtype"), "BF16");
    ck_assert_str_eq(attribute(world, path, "shape"), "[100]");
    ck_assert_str_eq(attribute(world, path, "encoding"), "dense");
    ck_assert_str_eq(attribute(world, path, "verified"), "none");
    ck_assert_str_eq(attribute(world, "raw/tensors/q.bin", "encoding"), "q4");
    ck_assert_str_eq(attribute(world, "raw/tensors/.bin", "name"), "");
    ck_assert_str_eq(attribute(world, "raw/tensors/.bin", "shape"), "[0, 5]");
    ck_assert_str_eq(attribute(world, "tensors/last.npy", "shape"), "[]");
    ck_assert_str_eq(attribute(world, "sections/weights.bin", "verified"), "none");
    ck_assert_str_eq(attribute(world, "sections/weights.bin", "name"), "-");
    ck_assert_str_eq(attribute(world, "config.json", "verified"), "-");
    ck_assert_str_eq(attribute(world, "tensors", "verified"), "-");
    ck_assert_str_eq(attribute(world, path, "nothing"), "-");
    world_free(world);
}
END_TEST

START_TEST(attributes_obey_the_room_they_get) {
    struct world *world = some_of_everything();
    world_build(world);
    char buf[200];
    size_t len = 0;
    uint64_t ino = world_find(world, "raw/tensors/packed.bin");
    ck_assert_int_eq(tree_xattr_get(world->tree, ino, "user.ckptfs.name", NULL, 0, &len, NULL), 0);
    ck_assert_uint_eq(len, 6);
    memset(buf, 'x', sizeof buf);
    ck_assert_int_eq(tree_xattr_get(world->tree, ino, "user.ckptfs.name", buf, 5, &len, NULL), CKPT_E_LIMIT);
    ck_assert_int_eq(tree_xattr_get(world->tree, ino, "user.ckptfs.name", buf, 6, &len, NULL), 0);
    ck_assert(!memcmp(buf, "packedx", 7));
    static const char all[] = "user.ckptfs.name\0user.ckptfs.dtype\0user.ckptfs.shape\0user.ckptfs.encoding\0"
                              "user.ckptfs.verified";
    ck_assert_int_eq(tree_xattr_list(world->tree, ino, NULL, 0, &len, NULL), 0);
    ck_assert_uint_eq(len, sizeof all);
    ck_assert_int_eq(tree_xattr_list(world->tree, ino, buf, sizeof all - 1, &len, NULL), CKPT_E_LIMIT);
    ck_assert_int_eq(tree_xattr_list(world->tree, ino, buf, sizeof buf, &len, NULL), 0);
    ck_assert(len == sizeof all && !memcmp(buf, all, len));
    ck_assert_int_eq(tree_xattr_list(world->tree, 1, buf, sizeof buf, &len, NULL), 0);
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(tree_xattr_list(world->tree, 0, buf, sizeof buf, &len, NULL), CKPT_E_NOENT);
    world_free(world);
}
END_TEST

START_TEST(attributes_follow_the_verification) {
    struct world *world = some_of_everything();
    world_unit(world, "good", 1000, 550, false); /* w, packed, passwd, q */
    world_unit(world, "bad", 1550, 250, true);   /* the long one, last */
    world_unit(world, "index", 2000, 100, false);
    world->catalog.groups[GROUP_TENSORS].index = (struct range){2000, 100};
    world_build(world);
    ck_assert_str_eq(attribute(world, "tensors/w.npy", "verified"), "no");
    struct buf bytes = world_cat(world, "tensors/w.npy");
    buf_free(&bytes);
    ck_assert_str_eq(attribute(world, "tensors/q.npy", "verified"), "no"); /* the index is not known yet */
    ck_assert_int_eq(guard_check_unit(world->guard, 2, NULL, NULL), 0);
    ck_assert_str_eq(attribute(world, "tensors/q.npy", "verified"), "yes");
    ck_assert_str_eq(attribute(world, "raw/tensors/last.bin", "verified"), "no");
    world_fault(world, "tensors/last.npy");
    ck_assert_str_eq(attribute(world, "raw/tensors/last.bin", "verified"), "corrupt");
    ck_assert_str_eq(attribute(world, "raw/tensors/.bin", "verified"), "yes"); /* empty: that of the index */
    world_free(world);

    /* What named a tensor is damaged: its bytes are good, and it is refused all the same. */
    world = some_of_everything();
    world_unit(world, "good", 1000, 800, false);
    world_unit(world, "index", 2000, 100, true);
    world->catalog.groups[GROUP_TENSORS].index = (struct range){2000, 100};
    world_build(world);
    ck_assert_int_eq(guard_check_unit(world->guard, 0, NULL, NULL), 0);
    ck_assert_str_eq(attribute(world, "tensors/q.npy", "verified"), "no");
    ck_assert_int_ne(guard_check_unit(world->guard, 1, NULL, NULL), 0);
    ck_assert_str_eq(attribute(world, "tensors/q.npy", "verified"), "corrupt");
    world_free(world);
    world = some_of_everything();
    world_unit(world, "good", 1000, 700, false);
    world_build_in(world, CKPT_VERIFY_OFF);
    ck_assert_str_eq(attribute(world, "tensors/w.npy", "verified"), "none");
    world_free(world);
}
END_TEST

/* ---- many
 * ------------------------------------------------------------------------------------------------------ */

START_TEST(many_tensors_are_found_at_once) {
    enum { MANY = 100000 };
    struct world *world = world_new();
    struct tensor *items = calloc(MANY, sizeof *items);
    char(*names)[24] = calloc(MANY, sizeof *names);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof *names, "layers/%u/w", i);
        items[i] =
            world_tensor(names[i], i % 3 ? DTYPE_U8 : DTYPE_F6_E2M3, ENCODING_DENSE, four, 1, 4 * i % 1000);
    }
    world->catalog.groups[GROUP_TENSORS] = (struct group){.present = true, .items = items, .count = MANY};
    world_build(world);
    ck_assert_uint_eq(world_stat(world, "raw/tensors").size, MANY);
    ck_assert_uint_eq(world_stat(world, "tensors").size, MANY - (MANY + 2) / 3);
    bool *seen = calloc(tree_count(world->tree) + 1, sizeof *seen);
    seen[1] = true;
    check_directory(world, 1, seen); /* looks each one up */
    ck_assert_uint_eq(world_stat(world, "tensors/layers%2F4%2Fw.npy").size, 128 + 4);
    ck_assert_uint_eq(world_find(world, "tensors/layers%2F3%2Fw.npy"), 0);
    free(seen);
    world_free(world);
    free(items);
    free(names);
}
END_TEST

/* ---- gpu/ -------------------------------------------------------------------------------------------------
 */

/* A device that refuses "q" and has all but "packed". */
struct pretence {
    unsigned held, let_go;
    const struct tensor *last;
};

static bool pretend_selects(void *arg, const struct tensor *tensor) {
    (void)arg;
    return strcmp(tensor->name, "packed") != 0;
}

static int pretend_describe(
    void *arg, const struct ckpt_cancel *cancel, char **ret_text, struct ckpt_err *err) {
    (void)arg, (void)cancel, (void)err;
    *ret_text = strdup("a device\n");
    return 0;
}

static int pretend_load(void *arg, const struct tensor *tensor, const struct ckpt_cancel *cancel,
    char **ret_text, void **ret_hold, struct ckpt_err *err) {
    struct pretence *pretence = arg;
    (void)cancel;
    pretence->last = tensor;
    if (!strcmp(tensor->name, "q"))
        return err_set(err, CKPT_E_GPU, "no room");
    pretence->held++;
    *ret_text = strdup(tensor->name);
    *ret_hold = &pretence->held;
    return 0;
}

static void pretend_let_go(void *arg, void *hold) {
    struct pretence *pretence = arg;
    ck_assert_ptr_eq(hold, &pretence->held);
    pretence->let_go++;
}

static struct pretence pretence;
static const struct tree_device device = {
    &pretence, pretend_selects, pretend_describe, pretend_load, pretend_let_go};

static struct world *world_with_device(void) {
    struct world *world = some_of_everything();
    pretence = (struct pretence){0};
    world->device = &device;
    world_build(world);
    return world;
}

START_TEST(a_device_has_a_file_for_each_tensor_it_selects) {
    struct world *world = world_with_device();
    struct buf got = {0}, want = {0};
    char file[CKPT_NAME_MAX + 1];
    tree_file_name(long_name, strlen(long_name), ".json", file);
    list(world, world_find(world, "gpu"), "", &got);
    buf_printf(&want,
        "device.json\ntensors/\ntensors/w.json\ntensors/%%2E.%%2Fetc%%2Fpasswd.json\ntensors/q.json\n"
        "tensors/.json\ntensors/%s\ntensors/last.json\n",
        file);
    ck_assert_str_eq(buf_cstr(&got), buf_cstr(&want));
    ck_assert_uint_eq(world_find(world, "gpu/tensors/packed.json"), 0);
    ck_assert_uint_eq(world_find(world, "gpu/tensors/w.npy"), 0);
    ck_assert_uint_eq(world_stat(world, "gpu").nlink, 3);
    bool *seen = calloc(tree_count(world->tree) + 1, sizeof *seen);
    seen[1] = true;
    check_directory(world, 1, seen);
    for (uint64_t i = 1; i <= tree_count(world->tree); i++)
        ck_assert(seen[i]);
    ck_assert_ptr_null(pretence.last); /* all this loads nothing */
    free(seen);
    buf_free(&got);
    buf_free(&want);
    world_free(world);
}
END_TEST

START_TEST(opening_loads_and_closing_lets_go) {
    struct world *world = world_with_device();
    struct ckpt_stat stat = world_stat(world, "gpu/tensors/last.json");
    struct tree_file *file;
    char bytes[16];
    size_t len;
    ck_assert(stat.dynamic && !stat.size && stat.kind == CKPT_FILE);
    ck_assert_int_eq(tree_open(world->tree, stat.ino, &file, NULL, NULL), 0);
    ck_assert_ptr_eq(pretence.last, &weights[6]);
    ck_assert_uint_eq(tree_file_size(file), 4);
    ck_assert_int_eq(tree_read(file, 1, bytes, sizeof bytes, &len, NULL, NULL), 0);
    ck_assert(len == 3 && !memcmp(bytes, "ast", 3) && !pretence.let_go);
    tree_close(file);
    ck_assert_uint_eq(pretence.let_go, 1);
    ck_assert_int_eq(world_fault(world, "gpu/tensors/q.json").code, CKPT_E_GPU);
    ck_assert_uint_eq(pretence.let_go, 1);
    struct buf text = world_cat(world, "gpu/device.json");
    ck_assert_str_eq(text.bytes, "a device\n");
    buf_free(&text);
    world_free(world);
}
END_TEST

/* 251 bytes fit before ".npy", but not before ".json". */
START_TEST(names_that_only_fit_without_json_are_cut) {
    static char fits[251], passes[252];
    struct world *world = some_of_everything();
    memset(fits, 'a', sizeof fits - 1);
    memset(passes, 'b', sizeof passes - 1);
    weights[0] = world_tensor(fits, DTYPE_U8, ENCODING_DENSE, four, 1, 0);
    weights[2] = world_tensor(passes, DTYPE_U8, ENCODING_DENSE, four, 1, 24);
    pretence = (struct pretence){0};
    world->device = &device;
    world_build(world);
    for (unsigned i = 0; i < 3; i += 2) {
        char path[CKPT_NAME_MAX + 20] = "gpu/tensors/";
        tree_file_name(weights[i].name, weights[i].name_len, ".json", path + strlen(path));
        struct buf text = world_cat(world, path);
        ck_assert_str_eq(text.bytes, weights[i].name);
        buf_free(&text);
        ck_assert_uint_eq(strlen(path), strlen("gpu/tensors/") + (i ? 217 + 5 : 255));
        path[strlen(path) - 6] ^= 1;
        ck_assert_uint_eq(world_find(world, path), 0);
    }
    world_free(world);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tree");
    TCase *tcase = tcase_create("tree");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, names_and_headers_are_those_of_the_contract);
    tcase_add_test(tcase, shapes_too_long_for_a_header_have_no_npy);
    tcase_add_test(tcase, the_paths_are_those_of_the_contract);
    tcase_add_test(tcase, every_inode_has_one_place);
    tcase_add_test(tcase, what_is_not_there_is_not_found);
    tcase_add_test(tcase, two_tensors_with_one_file_name_are_refused);
    tcase_add_test(tcase, views_past_63_bits_are_refused);
    tcase_add_test(tcase, too_many_files_are_refused);
    tcase_add_test(tcase, two_files_of_one_path_are_refused);
    tcase_add_test(tcase, attributes_tell_what_a_tensor_is);
    tcase_add_test(tcase, attributes_obey_the_room_they_get);
    tcase_add_test(tcase, attributes_follow_the_verification);
    tcase_add_test(tcase, many_tensors_are_found_at_once);
    tcase_add_test(tcase, a_device_has_a_file_for_each_tensor_it_selects);
    tcase_add_test(tcase, opening_loads_and_closing_lets_go);
    tcase_add_test(tcase, names_that_only_fit_without_json_are_cut);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
